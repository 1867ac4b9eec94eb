// Runs the commands of its standard input, and draws what a terminal shows as an SVG that plays in a page,
// also where scripts do not run.
//
//	node record.mjs PICTURE < COMMANDS
import { spawn } from "node:child_process";
import fs from "node:fs";
import readline from "node:readline";

const [picture] = process.argv.slice(2);
const columns = 100, rows = 30;
const lineHeight = 18, charWidth = 8.4, margin = 12;
// Seconds: the longest wait that is shown, and the time to read a comment, what a command has printed, and a preview.
const longestWait = 0.4, readComment = 1.5, readOutput = 5, readPreview = 10;

const lines = []; // {at, text, kind}
let at = 0.5;
let commandFailed = false;

function print(text, kind) {
  // As a terminal breaks lines.
  const parts = text.match(new RegExp(`.{1,${columns}}`, "gu")) ?? [""];
  for (const part of parts) lines.push({ at, text: part, kind });
}

async function run(command) {
  const child = spawn("script", ["-qec", `stty cols ${columns}; ${command}`, "/dev/null"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  let last = Date.now();
  for await (const line of readline.createInterface({ input: child.stdout })) {
    const now = Date.now();
    at += Math.min((now - last) / 1000, longestWait);
    last = now;
    const text = line.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]|\r/g, "").replaceAll("\t", "    ");
    print(text, /^ *(error|make)\b/.test(text) ? "error" : "output");
  }
  commandFailed = (await ended) !== 0;
}

for (const command of fs.readFileSync(0, "utf8").trim().split("\n")) {
  console.log(command);
  if (command.startsWith("#")) {
    print("", "output");
    print(command, "comment");
    at += readComment;
    continue;
  }
  print(`$ ${command}`, "command");
  at += 1;
  const before = lines.length;
  await run(command);
  if (lines.length > before) at += /preview/.test(command) ? readPreview : readOutput;
}
if (!commandFailed) throw new Error("the last command was not refused");

const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
const end = at + 1;
// What is shown after each line: a curtain hides the lines to come, and the text moves up once the rows are full.
const moments = [];
lines.forEach((line, i) => {
  if (moments.at(-1)?.at === line.at) moments.at(-1).shown = i + 1;
  else moments.push({ at: line.at, shown: i + 1 });
});
const frames = (position) => moments.map((m) => `${((m.at / end) * 100).toFixed(2)}%{transform:translateY(${position(m.shown)}px)}`).join("");
const width = Math.round(columns * charWidth + 2 * margin), height = rows * lineHeight + 2 * margin;
const text = lines.flatMap((line, i) =>
  line.text.trim() === "" ? [] : `<text class="${line.kind}" x="${margin}" y="${margin + 13 + i * lineHeight}">${escape(line.text)}</text>`);
fs.writeFileSync(picture, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<style>
text{font:14px ui-monospace,"SFMono-Regular",Menlo,Consolas,"Liberation Mono",monospace;white-space:pre;fill:#d0d7de}
.command{fill:#7ee787}.comment{fill:#8b949e}.error{fill:#ff7b72}
.scroll,.curtain{animation:${end.toFixed(2)}s step-end infinite}
.scroll{animation-name:scroll}.curtain{animation-name:curtain}
@keyframes scroll{0%{transform:none}${frames((shown) => -Math.max(0, shown - rows) * lineHeight)}}
@keyframes curtain{0%{transform:none}${frames((shown) => Math.min(shown, rows) * lineHeight)}}
</style>
<rect width="${width}" height="${height}" rx="6" fill="#0d1117"/>
<svg y="${margin}" width="${width}" height="${rows * lineHeight}"><g class="scroll"><g transform="translate(0 -${margin})">
${text.join("\n")}
</g></g><rect class="curtain" width="${width}" height="${rows * lineHeight}" fill="#0d1117"/></svg>
</svg>
`);
console.log(`${picture}: ${lines.length} lines, ${Math.round(end)} s, ${Math.round(fs.statSync(picture).size / 1024)} KiB`);
