// Ask `spit serve` for the classes and the mask of an image: node client.mjs IMAGE [ADDRESS]; needs no package.
import { readFile } from "node:fs/promises";

const [path, address = "http://127.0.0.1:7860"] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${process.env.SPIT_TOKEN ?? ""}` };

async function ask(route, options = {}) {
  const form = new FormData();
  form.append("image", new Blob([await readFile(path)], { type: "application/octet-stream" }), "image");
  for (const [name, value] of Object.entries(options)) form.append(name, String(value));
  const response = await fetch(`${address}/v1/${route}`, { method: "POST", headers, body: form });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  return answer;
}

const { classes } = await ask("classify", { top: 3 });
const { mask, box } = await ask("segment");
console.log(JSON.stringify({ classes: classes.map((one) => one.name), mask, box }));
