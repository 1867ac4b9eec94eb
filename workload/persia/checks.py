"""What is found out before a replica's command starts, so that it does not find out by
itself after minutes, or never."""

import os
import socket
import ssl
import subprocess
import sys

import coordinator

# GKE mounts the driver of its GPUs there and sets no variable. Upstream's image even
# drops what the base image sets.
DRIVER = os.environ.get("PERSIA_DRIVER_DIR", "/usr/local/nvidia")

# Where Debian and Red Hat keep all authorities in one file.
SYSTEM_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def before(role, environment):
    """Why a role cannot start, or nothing."""
    names = ["PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG"]
    if role == coordinator.TRAINER:
        names.append("PERSIA_NN_WORKER_ENTRY")
    elif role == coordinator.DATA_LOADER:
        names.append("PERSIA_DATALOADER_ENTRY")
    for name in names:
        file = environment.get(name)
        if file and not os.path.isfile(file):
            return f"{name} names {file}, which is not there: is it in the image, or on a volume that the role mounts?"
    wanted = int(environment.get("PERSIA_GPUS", "0"))
    return gpus(wanted, environment) if wanted else None


def gpus(wanted, environment):
    """Why PyTorch cannot use the GPUs that the replica has asked for. A script that
    picks the CPU then would train for weeks."""
    python = environment.get("PERSIA_PYTHON", sys.executable)
    count = subprocess.run(
        [python, "-c", "import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)"],
        env=environment, stdout=subprocess.PIPE, universal_newlines=True,
    )
    if count.returncode != 0:
        return "PyTorch cannot be asked for its GPUs"
    found = int(count.stdout.split()[-1])
    if found < wanted:
        return f"PyTorch sees {found} GPUs and the replica has asked for {wanted}: is the driver in {DRIVER}, and is PyTorch one for CUDA?"
    return None


def with_driver(environment):
    """The environment with the folders of the GPU driver, where they exist."""
    for name, folder in (("LD_LIBRARY_PATH", "lib64"), ("PATH", "bin")):
        folder = os.path.join(DRIVER, folder)
        paths = [path for path in environment.get(name, "").split(":") if path]
        if os.path.isdir(folder) and folder not in paths:
            environment[name] = ":".join(paths + [folder])
    return environment


def with_authority(environment, folder):
    """The environment in which the command trusts whoever signed the certificate of NATS.
    SSL_CERT_FILE is the only way to tell PERSIA's client, and Python's modules heed it
    too, so the file keeps the authorities that they trust otherwise."""
    authority = environment.get("PERSIA_NATS_AUTHORITY")
    if not authority:
        return environment
    roots = ""
    for file in (environment.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile, *SYSTEM_ROOTS):
        if file and os.path.isfile(file):
            with open(file) as found:
                roots = found.read().rstrip() + "\n"
            break
    bundle = os.path.join(folder, "authorities.pem")
    with open(bundle, "w") as file:
        file.write(roots + authority.strip() + "\n")
    return dict(environment, SSL_CERT_FILE=bundle)


def address(url):
    """Host and port of a URL, or None without one."""
    host = url.split("//")[-1].split("@")[-1]
    if not host:
        return None
    name, _, port = host.partition(":")
    return name, int(port or 4222)


def reachable(where):
    """Whether somebody takes connections there."""
    if not where:
        return True
    try:
        socket.create_connection(where, timeout=5).close()
        return True
    except OSError:
        return False
