/** A viewer of /openapi.json: routes, fields, answers, examples, and a request to copy. */

import * as api from "./api.js";
import {connectTheme} from "./appearance.js";
import {h} from "./dom.js";
import {Feedback} from "./feedback.js";

let spec = null;

/** A schema with its reference followed. */
function follow(schema) {
  let found = schema ?? {};
  while (found.$ref) found = found.$ref.split("/").slice(1).reduce((place, key) => place?.[key], spec) ?? {};
  return found;
}

/** The type of a schema in a few words. */
function typeName(schema) {
  if (!schema) return "";
  const found = follow(schema);
  const several = found.anyOf ?? found.oneOf;
  if (several) return several.map(typeName).join(" or ");
  if (found.allOf) return found.allOf.map(typeName).join(" and ");
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.type === "array") return `list of ${typeName(found.items)}`;
  if (found.type === "object" && schema.$ref) return schema.$ref.split("/").pop();
  const bounds = [["minimum", "≥"], ["exclusiveMinimum", ">"], ["maximum", "≤"], ["exclusiveMaximum", "<"]]
    .filter(([key]) => found[key] !== undefined).map(([key, sign]) => `${sign} ${found[key]}`).join(", ");
  return [found.format === "binary" ? "file" : found.type ?? "any", bounds].filter(Boolean).join(" ");
}

function fieldRow(name, schema, needed, about) {
  const found = follow(schema), fallback = schema.default ?? found.default;
  return h("tr", {}, h("th", {scope: "row"}, name, needed ? h("span", {class: "needed"}, "required") : null),
    h("td", {}, h("span", {class: "type"}, typeName(schema)),
      fallback !== undefined && fallback !== null ? h("div", {class: "hint"}, `default ${JSON.stringify(fallback)}`) : null),
    h("td", {class: "hint"}, about ?? schema.description ?? found.description ?? ""));
}

function fieldTable(schema) {
  const found = follow(schema), rows = Object.entries(found.properties ?? {}).map(([name, one]) =>
    fieldRow(name, one, found.required?.includes(name)));
  return rows.length ? h("table", {class: "fields"}, h("tbody", {}, rows)) : null;
}

/** An example of a media type or schema, if one is given anywhere. */
function exampleOf(content) {
  const found = follow(content.schema);
  const given = content.example ?? Object.values(content.examples ?? {})[0]?.value ?? found.example ?? found.examples?.[0];
  return given;
}

/** Text with `code` in it. */
const prose = (text) => text.split("`").map((part, n) => (n % 2 ? h("code", {class: "type"}, part) : part));
const pretty = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const code = (text, label) => h("pre", {tabindex: "0", "aria-label": label}, h("code", {}, text));

function curl(method, path, operation) {
  const content = operation.requestBody ? follow(operation.requestBody).content : {}, form = content["multipart/form-data"];
  const head = `curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${location.origin}${path}`;
  if (form) {
    const files = Object.entries(follow(form.schema).properties ?? {}).filter(([, one]) => typeName(one).includes("file"));
    return `${head} ${(files.length ? files : [["image"]]).map(([name]) => `-F ${name}=@cat.png`).join(" ")}`;
  }
  const example = content["application/json"] && exampleOf(content["application/json"]);
  return example ? `${head} -H "Content-Type: application/json" -d '${JSON.stringify(example)}'` : head;
}

function copyButton(text) {
  const button = h("button", {type: "button", class: "quiet small", onclick: async () => {
    await navigator.clipboard?.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }}, "Copy");
  return button;
}

/** A button that asks the route itself, where that needs no input. */
function tryIt(method, path) {
  if (method !== "get" || path.includes("{")) return null;
  const place = h("div", {});
  return h("div", {class: "part"}, h("div", {class: "try"}, h("button", {type: "button", class: "quiet small", onclick: async () => {
    try {
      const text = await api.text(path.slice(1));
      place.replaceChildren(code(text.startsWith("{") || text.startsWith("[") ? pretty(JSON.parse(text)) : text.slice(0, 4000),
        `Answer of ${path}`));
    } catch (error) {
      place.replaceChildren(h("p", {class: "hint"}, error.message));
    }
  }}, "Ask it now")), place);
}

function route(path, method, operation) {
  const parameters = (operation.parameters ?? []).map(follow), body = operation.requestBody && follow(operation.requestBody);
  const id = anchor(path, method), command = curl(method, path, operation);
  const answers = Object.entries(operation.responses ?? {}).map(([status, raw]) => {
    const answer = follow(raw), [kind, content] = Object.entries(answer.content ?? {})[0] ?? [];
    const example = content && exampleOf(content), table = content && fieldTable(content.schema);
    return h("details", {}, h("summary", {}, h("span", {class: "mono"}, status), h("span", {}, answer.description ?? ""),
      h("span", {class: "type"}, kind ?? "")), table, example !== undefined ? code(pretty(example), `Example of answer ${status}`) : null);
  });
  return h("section", {class: "card route", id, "aria-label": `${method} ${path}`},
    h("div", {class: "route-head"}, h("span", {class: "method"}, method), h("h3", {}, h("code", {}, path))),
    operation.summary || operation.description ? h("p", {}, ...prose(operation.description ?? operation.summary)) : null,
    parameters.length ? h("div", {class: "part"}, h("h4", {}, "Parameters"), h("table", {class: "fields"}, h("tbody", {},
      parameters.map((one) => fieldRow(one.name, one.schema ?? {}, one.required, one.description))))) : null,
    ...Object.entries(body?.content ?? {}).map(([kind, content]) => {
      const example = exampleOf(content);
      return h("div", {class: "part"}, h("h4", {}, kind), fieldTable(content.schema),
        example !== undefined ? code(pretty(example), "Example of the request") : null);
    }),
    h("div", {class: "part"}, h("div", {class: "snippet-head"}, h("h4", {}, "Request"), copyButton(command)), code(command, "Request")),
    answers.length ? h("div", {class: "part"}, h("h4", {}, "Answers"), h("div", {class: "answers"}, answers)) : null,
    tryIt(method, path));
}

const anchor = (path, method) => `${method}-${path.replace(/\W+/g, "-")}`.replace(/-+$/, "");

async function start() {
  connectTheme(document.getElementById("theme"));
  spec = await api.json("openapi.json");
  const {info, paths} = spec, groups = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (!["get", "post", "put", "delete", "patch"].includes(method)) continue;
      const [first, ...rest] = operation.tags?.[0] ?? "Routes", tag = first.toUpperCase() + rest.join("");
      groups.set(tag, [...(groups.get(tag) ?? []), [path, method, operation]]);
    }
  }
  document.getElementById("contents").append(...[...groups].flatMap(([tag, routes]) => [h("h2", {}, tag),
    ...routes.map(([path, method]) => h("a", {href: `#${anchor(path, method)}`}, h("span", {class: "method"}, method), h("code", {}, path)))]));
  document.getElementById("main").append(h("h1", {}, info.title), h("p", {class: "lead"}, ...prose(info.description ?? "")),
    h("p", {class: "mono"}, `Version ${info.version}`),
    ...[...groups].flatMap(([tag, routes]) => [h("h2", {class: "group"}, tag), ...routes.map((one) => route(...one))]));
  document.body.dataset.ready = "";
}

start().catch((error) => new Feedback().fail(error));
