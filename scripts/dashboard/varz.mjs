// Stands in for the NATS exporter, of which the sandbox has no image: it serves every number of a
// server's /varz as a gauge, as the exporter does.
import http from "node:http";

http.createServer(async (request, response) => {
  const server = new URL(request.url, "http://localhost").searchParams.get("server");
  try {
    const varz = await (await fetch(`http://${server}:8222/varz`)).json();
    const numbers = Object.entries(varz).filter(([, value]) => typeof value === "number");
    response.end(numbers.map(([name, value]) => `# TYPE gnatsd_varz_${name} gauge\ngnatsd_varz_${name} ${value}\n`).join(""));
  } catch (error) {
    response.writeHead(502).end(`${error}\n`);
  }
}).listen(7777, "127.0.0.1");
