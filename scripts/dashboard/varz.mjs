// Replaces the NATS exporter: it serves each number in a server's /varz as a gauge, as the exporter does.
import http from "node:http";

http.createServer(async (request, response) => {
  const pod = new URL(request.url, "http://localhost").searchParams.get("pod");
  try {
    const answer = await fetch(`http://${pod}.persia-nats-service-mgmt.nats-io.svc.cluster.local:8222/varz`);
    const numbers = Object.entries(await answer.json()).filter(([, value]) => typeof value === "number");
    response.end(numbers.map(([name, value]) => `# TYPE gnatsd_varz_${name} gauge\ngnatsd_varz_${name} ${value}\n`).join(""));
  } catch (error) {
    response.writeHead(502).end(`${error}\n`);
  }
}).listen(7777);
