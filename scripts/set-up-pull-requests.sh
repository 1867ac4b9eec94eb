#!/usr/bin/env bash
# Lets the workflows of a repository preview and deploy stacks: docs/guides/pull-requests.md says what that is. Run it again
# for another stack, after `pulumi destroy`, or when it has failed: it keeps what is there.
#
#   PROJECT=my-project REGION=us-central1 BUCKET=my-project-pulumi REPOSITORY=my-organization/persia STACKS="dev prod" \
#     APPROVER=somebody scripts/set-up-pull-requests.sh
set -euo pipefail
cd "$(dirname "$0")/.."
: "${PROJECT:?}" "${REGION:?}" "${BUCKET:?}" "${REPOSITORY:?}" "${STACKS:?}" "${APPROVER:?}"
export PULUMI_BACKEND_URL=gs://$BUCKET CLOUDSDK_CORE_PROJECT=$PROJECT
preview=persia-preview@$PROJECT.iam.gserviceaccount.com
deploy=persia-deploy@$PROJECT.iam.gserviceaccount.com
number=$(gcloud projects describe "$PROJECT" --format='value(projectNumber)')
repository=$(gh api "repos/$REPOSITORY" --jq .id)
approver=$(gh api "users/$APPROVER" --jq .id)
pool=projects/$number/locations/global/workloadIdentityPools/github

exists() {
	"$@" > /dev/null 2>&1
}

# grant MEMBER ROLES KIND RESOURCE [FLAG…]
grant() {
	local role kind
	read -ra kind <<< "$3"
	for role in $2; do
		gcloud "${kind[@]}" add-iam-policy-binding "${@:4}" --member="$1" --role="roles/$role" > /dev/null
		echo "granted: $role on $4 to $1"
	done
}

gcloud services enable cloudkms.googleapis.com iamcredentials.googleapis.com sts.googleapis.com
for stack in $STACKS; do
	exists pulumi stack select "$stack" ||
		pulumi stack init "$stack" --secrets-provider="gcpkms://projects/$PROJECT/locations/$REGION/keyRings/pulumi/cryptoKeys/state"
done

# The accounts. The one that deploys may grant only the two roles that nodes have.
for account in persia-preview persia-deploy; do
	exists gcloud iam service-accounts describe "$account@$PROJECT.iam.gserviceaccount.com" ||
		gcloud iam service-accounts create "$account"
done
grant "serviceAccount:$preview" "browser container.viewer compute.viewer iam.securityReviewer" projects "$PROJECT" --condition=None
grant "serviceAccount:$deploy" "container.admin compute.networkAdmin iam.serviceAccountViewer" projects "$PROJECT" --condition=None
condition=$(mktemp)
trap 'rm "$condition"' EXIT
cat > "$condition" << END
title: roles-of-nodes
expression: >-
  api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([
  'roles/container.defaultNodeServiceAccount', 'roles/artifactregistry.reader'])
END
grant "serviceAccount:$deploy" resourcemanager.projectIamAdmin projects "$PROJECT" --condition-from-file="$condition"

# The account that deploys may act only as the nodes' account, which therefore comes before everything else.
for stack in $STACKS; do
	pulumi up --yes --stack "$stack" --target '**serviceaccount/account:Account::*-nodes'
	nodes=$(pulumi config get --stack "$stack" --path persia:cluster.name)-nodes@$PROJECT.iam.gserviceaccount.com
	grant "serviceAccount:$deploy" "iam.serviceAccountUser iam.serviceAccountAdmin" "iam service-accounts" "$nodes"
done

# The state, and the key of its secrets.
grant "serviceAccount:$preview" storage.objectViewer "storage buckets" "gs://$BUCKET"
grant "serviceAccount:$deploy" storage.objectUser "storage buckets" "gs://$BUCKET"
for account in "$preview" "$deploy"; do
	grant "serviceAccount:$account" cloudkms.cryptoKeyDecrypter "kms keys" state --keyring=pulumi --location="$REGION"
done

# Workflows of the repository are one account, and those in the environment of a stack the other.
exists gcloud iam workload-identity-pools describe github --location=global ||
	gcloud iam workload-identity-pools create github --location=global
stack="has(assertion.environment) ? assertion.environment : ''"
exists gcloud iam workload-identity-pools providers describe github --location=global --workload-identity-pool=github ||
	gcloud iam workload-identity-pools providers create-oidc github --location=global --workload-identity-pool=github \
		--issuer-uri=https://token.actions.githubusercontent.com --attribute-condition="assertion.repository_id == '$repository'" \
		--attribute-mapping="google.subject=assertion.sub,attribute.repository_id=assertion.repository_id,attribute.stack=$stack"
trusted=principalSet://iam.googleapis.com/$pool
grant "$trusted/attribute.repository_id/$repository" iam.workloadIdentityUser "iam service-accounts" "$preview"
for stack in $STACKS; do
	grant "$trusted/attribute.stack/$stack" iam.workloadIdentityUser "iam service-accounts" "$deploy"
done

gh variable set PULUMI_BACKEND_URL --repo "$REPOSITORY" --body "gs://$BUCKET"
gh variable set WORKLOAD_IDENTITY_PROVIDER --repo "$REPOSITORY" --body "$pool/providers/github"
gh variable set PREVIEW_SERVICE_ACCOUNT --repo "$REPOSITORY" --body "$preview"
for stack in $STACKS; do
	gh api --method PUT "repos/$REPOSITORY/environments/$stack" --silent --input - << END
{"reviewers": [{"type": "User", "id": $approver}], "prevent_self_review": true,
 "deployment_branch_policy": {"protected_branches": true, "custom_branch_policies": false}}
END
	gh variable set DEPLOY_SERVICE_ACCOUNT --repo "$REPOSITORY" --env "$stack" --body "$deploy"
done
