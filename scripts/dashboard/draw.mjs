// Draws workload/persia/dashboard.json as one picture, with what Prometheus at 127.0.0.1:9090 answers to
// the queries of its panels.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const require = createRequire(path.join(here, "../pictures/"));
const puppeteer = require("puppeteer");
const prometheus = "http://127.0.0.1:9090";
const scrape = 2; // seconds, as in prometheus.yml
const [output] = process.argv.slice(2);

const dashboard = JSON.parse(fs.readFileSync(path.join(here, "../../workload/persia/dashboard.json")));

async function ask(api, parameters) {
  const response = await fetch(`${prometheus}/api/v1/${api}?${new URLSearchParams(parameters)}`);
  const answer = await response.json();
  if (answer.status !== "success") throw new Error(`${parameters.query}: ${answer.error}`);
  return answer.data;
}

// The time in which replicas have told of themselves.
const now = Date.now() / 1000;
const told = await ask("query_range", { query: "count(persia_replica_attempt)", start: now - 3600, end: now, step: scrape });
if (told.result.length === 0) throw new Error("Prometheus has no metrics of replicas");
const start = told.result[0].values[0][0];
const step = Math.max(scrape, Math.ceil((now - start) / 300));

// What Grafana puts in the place of its variables, with all jobs chosen.
const filled = (query) => query.replaceAll("$__rate_interval", `${Math.max(4 * scrape, step + scrape)}s`).replaceAll("$job", ".+");
const named = (legend, labels) => legend.replace(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? "");

for (const panel of dashboard.panels) {
  panel.series = [];
  for (const target of panel.targets ?? []) {
    for (const { metric, values } of (await ask("query_range", { query: filled(target.expr), start, end: now, step })).result) {
      panel.series.push({ name: named(target.legendFormat, metric), values: new Map(values.map(([time, value]) => [time, Number(value)])) });
    }
  }
  const times = [...new Set(panel.series.flatMap((series) => [...series.values.keys()]))].sort((a, b) => a - b);
  panel.data = [times, ...panel.series.map((series) => times.map((time) => series.values.get(time) ?? null))];
  panel.series = panel.series.map((series) => series.name);
  const shown = panel.series.length > 0 ? "" : ": no data";
  if (panel.type !== "row") console.log(`${panel.title}${shown}`);
}

const read = (file) => fs.readFileSync(require.resolve(file), "utf8");
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.setViewport({ width: 1200, height: 800 });
await page.setContent(`<style>${read("uplot/dist/uPlot.min.css")}
  body { margin: 0; padding: 8px; width: 1184px; box-sizing: border-box; background: #f4f5f5; color: #24292e; font: 12px Arial, sans-serif; position: relative; }
  div.panel { position: absolute; box-sizing: border-box; background: #fff; border: 1px solid #d8d9da; border-radius: 2px; padding: 4px 6px; overflow: hidden; }
  div.row { position: absolute; font-weight: bold; font-size: 14px; }
  h3 { margin: 0; font-size: 12px; }
  .none { color: #767676; text-align: center; margin-top: 50px; }
  .legend { font-size: 10px; color: #464c54; line-height: 12px; max-height: 24px; overflow: hidden; }
  .legend b { display: inline-block; width: 10px; height: 3px; margin: 0 3px 3px 0; }
  .legend span { margin-right: 8px; white-space: nowrap; }
</style><script>${read("uplot/dist/uPlot.iife.min.js")}</script><body></body>`);
await page.evaluate((panels) => {
  const unit = 20, column = 1184 / 24;
  const colors = ["#37872d", "#1f60c4", "#fa6400", "#c4162a", "#8f3bb8", "#e0b400", "#0a9d9d", "#705da0", "#5a7d0c", "#3f2b5b"];
  const formats = {
    percentunit: (v) => `${+(v * 100).toPrecision(3)}%`,
    percent: (v) => `${v}%`,
    s: (v) => v === 0 ? "0" : v >= 1 ? `${+v.toPrecision(3)} s` : v >= 1e-3 ? `${+(v * 1e3).toPrecision(3)} ms` : `${+(v * 1e6).toPrecision(3)} µs`,
    Bps: (v) => `${big(v)}B/s`,
    bytes: (v) => v >= 2 ** 20 ? `${+(v / 2 ** 20).toPrecision(3)} MiB` : `${v} B`,
    cps: (v) => `${big(v)}c/s`,
  };
  const big = (v) => v >= 1e6 ? `${+(v / 1e6).toPrecision(3)} M` : v >= 1e3 ? `${+(v / 1e3).toPrecision(3)} k` : `${+v.toPrecision(3)} `;
  let bottom = 0;
  for (const panel of panels) {
    const { x, y, w, h } = panel.gridPos;
    const box = document.createElement("div");
    Object.assign(box.style, { left: `${x * column + 4}px`, top: `${y * unit + 4}px`, width: `${w * column - 4}px`, height: `${h * unit - 4}px` });
    bottom = Math.max(bottom, (y + h) * unit);
    document.body.append(box);
    if (panel.type === "row") {
      box.className = "row";
      box.textContent = `▾ ${panel.title}`;
      continue;
    }
    box.className = "panel";
    box.append(Object.assign(document.createElement("h3"), { textContent: panel.title }));
    if (panel.series.length === 0) {
      box.append(Object.assign(document.createElement("div"), { className: "none", textContent: "No data" }));
      continue;
    }
    const { unit: format, min, max } = panel.fieldConfig.defaults;
    const suffix = format.startsWith("suffix:") ? format.slice(7) : "";
    const text = formats[format] ?? ((v) => big(v).trimEnd() + suffix);
    const highest = Math.max(...panel.data.slice(1).flat().filter((v) => v !== null));
    const lowest = Math.min(...panel.data.slice(1).flat().filter((v) => v !== null));
    const margin = (highest - lowest) * 0.1 || Math.abs(highest) * 0.1 || 1;
    new uPlot({
      width: w * column - 18, height: h * unit - 52,
      legend: { show: false }, cursor: { show: false },
      scales: { y: { range: () => [min ?? lowest - margin, max ?? highest + margin] } },
      axes: [
        { size: 22, font: "10px Arial", grid: { stroke: "#eee" }, ticks: { size: 3 } },
        { size: 62, font: "10px Arial", grid: { stroke: "#eee" }, ticks: { size: 3 }, values: (_, splits) => splits.map(text) },
      ],
      series: [{}, ...panel.series.map((name, i) => ({ label: name, stroke: colors[i % colors.length], width: 1, spanGaps: false, points: { show: false } }))],
    }, panel.data, box);
    const legend = Object.assign(document.createElement("div"), { className: "legend" });
    panel.series.forEach((name, i) => {
      const entry = document.createElement("span");
      entry.append(Object.assign(document.createElement("b"), { style: `background: ${colors[i % colors.length]}` }), name);
      legend.append(entry);
    });
    box.append(legend);
  }
  document.body.style.height = `${bottom + 8}px`;
}, dashboard.panels);
await page.screenshot({ path: output, fullPage: true });
await browser.close();
console.log(`${output}: ${Math.round(fs.statSync(output).size / 1024)} KiB`);
