// Draws workload/persia/dashboard.json into FOLDER/dashboard.png and, for dark pages, dashboard-dark.png,
// with the answers of Prometheus at 127.0.0.1:9090 to the queries of its panels.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const require = createRequire(path.join(here, "../pictures/"));
const puppeteer = require("puppeteer");
const prometheus = "http://127.0.0.1:9090";
const scrape = 2; // seconds, as in prometheus.yml
const [folder] = process.argv.slice(2);

const dashboard = JSON.parse(fs.readFileSync(path.join(here, "../../workload/persia/dashboard.json")));

async function ask(api, parameters) {
  const response = await fetch(`${prometheus}/api/v1/${api}?${new URLSearchParams(parameters)}`);
  const answer = await response.json();
  if (answer.status !== "success") throw new Error(`${parameters.query}: ${answer.error}`);
  return answer.data.result;
}

// The picture begins a little before the script begins to push.
const now = Date.now() / 1000;
const pushed = await ask("query_range", { query: "count(persia_model_loss)", start: now - 3600, end: now, step: scrape });
if (pushed.length === 0) throw new Error("Prometheus has no metrics of the model");
const start = pushed[0].values[0][0] - 20;
const step = Math.max(scrape, Math.ceil((now - start) / 300));

// Grafana replaces these variables, here with all jobs chosen.
const filled = (query) => query.replaceAll("$__rate_interval", `${Math.max(4 * scrape, step + scrape)}s`).replaceAll("$job", ".+");
const named = (legend, labels) => legend.replace(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? "");

for (const panel of dashboard.panels) {
  const series = [];
  for (const target of panel.targets ?? []) {
    for (const { metric, values } of await ask("query_range", { query: filled(target.expr), start, end: now, step })) {
      series.push({ name: named(target.legendFormat, metric), values: new Map(values.map(([time, value]) => [time, Number(value)])) });
    }
  }
  const times = [...new Set(series.flatMap(({ values }) => [...values.keys()]))].sort((a, b) => a - b);
  panel.data = [times, ...series.map(({ values }) => times.map((time) => values.get(time) ?? null))];
  panel.series = series.map(({ name }) => name);
  if (panel.type !== "row" && series.length === 0) console.log(`no data: ${panel.title}`);
}

// draw runs in the browser.
function draw(panels, theme, start, now) {
  const column = 960 / 24, row = 20;
  const colors = theme.colors;
  const number = (v) => `${+v.toPrecision(3)}`;
  const scaled = (v, base, prefixes) => {
    const power = v === 0 ? 0 : Math.min(prefixes.length - 1, Math.max(0, Math.floor(Math.log(Math.abs(v)) / Math.log(base))));
    return `${number(v / base ** power)}${prefixes[power]}`;
  };
  const thousands = (v) => scaled(v, 1000, ["", " K", " M", " G"]);
  const formats = {
    percentunit: (v) => `${number(v * 100)}%`,
    percent: (v) => `${number(v)}%`,
    s: (v) => (v === 0 ? "0 s" : v >= 1 ? `${number(v)} s` : v >= 1e-3 ? `${number(v * 1e3)} ms` : `${number(v * 1e6)} µs`),
    Bps: (v) => scaled(v, 1000, [" B/s", " kB/s", " MB/s", " GB/s"]),
    bytes: (v) => scaled(v, 1024, [" B", " KiB", " MiB", " GiB"]),
    mbytes: (v) => scaled(v, 1024, [" MiB", " GiB"]),
    cps: (v) => `${thousands(v)} c/s`,
  };
  const add = (to, tag, properties) => to.appendChild(Object.assign(document.createElement(tag), properties));
  let bottom = 0;
  for (const panel of panels) {
    const { x, y, w, h } = panel.gridPos;
    const box = add(document.body, "div", { className: panel.type === "row" ? "row" : "panel" });
    Object.assign(box.style, { left: `${x * column + 4}px`, top: `${y * row + 4}px`, width: `${w * column - 4}px`, height: `${h * row - 4}px` });
    bottom = Math.max(bottom, (y + h) * row);
    add(box, "h3", { textContent: panel.title });
    if (panel.type === "row") continue;
    if (panel.series.length === 0) {
      add(box, "div", { className: "none", textContent: "No data" });
      continue;
    }
    const { unit = "", min, max } = panel.fieldConfig.defaults;
    const format = formats[unit] ?? ((v) => thousands(v) + (unit.startsWith("suffix:") ? unit.slice(7) : ""));
    const values = panel.data.slice(1).flat().filter((v) => v !== null);
    const highest = Math.max(...values), lowest = Math.min(...values);
    const margin = (highest - (min ?? lowest)) * 0.1 || Math.abs(highest) * 0.1 || 1;
    const axis = { font: "10px Arial", stroke: theme.text, grid: { stroke: theme.line, width: 1 }, ticks: { show: false } };
    new uPlot({
      width: w * column - 16, height: h * row - 50, padding: [6, 24, 0, 0],
      legend: { show: false }, cursor: { show: false },
      scales: { x: { range: () => [start, now] }, y: { range: () => [min ?? lowest - margin, max ?? highest + margin] } },
      axes: [
        { ...axis, size: 20, space: 55, values: (_, splits) => splits.map((at) => new Date(at * 1000).toTimeString().slice(0, 8)) },
        { ...axis, size: 64, space: 24, values: (_, splits) => splits.map(format) },
      ],
      series: [{}, ...panel.series.map((name, i) => ({ stroke: colors[i % colors.length], width: 1.2, points: { show: false } }))],
    }, panel.data, box);
    const legend = add(box, "div", { className: "legend" });
    panel.series.forEach((name, i) => {
      const entry = add(legend, "span", {});
      add(entry, "b", {}).style.background = colors[i % colors.length];
      entry.append(name);
    });
  }
  document.body.style.height = `${bottom + 4}px`;
}

const read = (file) => fs.readFileSync(require.resolve(file), "utf8");
const page = ({ back, panel, line, text }) => `<style>${read("uplot/dist/uPlot.min.css")}
  body { margin: 0; width: 964px; background: ${back}; color: ${text}; font: 12px Arial, sans-serif; position: relative; }
  .panel, .row { position: absolute; box-sizing: border-box; overflow: hidden; }
  .panel { background: ${panel}; border: 1px solid ${line}; border-radius: 2px; padding: 4px 6px; }
  h3 { margin: 0; font-size: 12px; line-height: 15px; }
  .row h3 { font-size: 14px; }
  .none { text-align: center; margin-top: 45px; opacity: 0.7; }
  .legend { font-size: 10px; line-height: 12px; height: 24px; overflow: hidden; }
  .legend b { display: inline-block; width: 10px; height: 3px; margin: 0 3px 3px 0; }
  .legend span { display: inline-block; margin-right: 8px; white-space: nowrap; }
</style><script>${read("uplot/dist/uPlot.iife.min.js")}</script><body></body>`;

const light = { back: "#f4f5f5", panel: "#ffffff", line: "#e4e6e8", text: "#24292e",
  colors: ["#37872d", "#1f60c4", "#c4162a", "#fa6400", "#8f3bb8", "#0a9d9d", "#b08800", "#705da0", "#5a7d0c", "#3f2b5b"] };
const dark = { back: "#0d1117", panel: "#181b1f", line: "#2c3235", text: "#ccccdc",
  colors: ["#73bf69", "#5794f2", "#f2495c", "#ff9830", "#b877d9", "#37c8c8", "#fade2a", "#a397d0", "#a3d12a", "#d0a0ff"] };

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
for (const [name, theme] of [["dashboard.png", light], ["dashboard-dark.png", dark]]) {
  const tab = await browser.newPage();
  await tab.setViewport({ width: 964, height: 800, deviceScaleFactor: 1.5 });
  await tab.setContent(page(theme));
  await tab.evaluate(draw, dashboard.panels, theme, start, now);
  const output = path.join(folder, name);
  await tab.screenshot({ path: output, fullPage: true });
  console.log(`${output}: ${Math.round(fs.statSync(output).size / 1024)} KiB`);
}
await browser.close();
