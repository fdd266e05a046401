/** The explorer: one picture at a time, and the views on it. */

import * as api from "./api.js";
import {connectTheme} from "./appearance.js";
import {h, number} from "./dom.js";
import * as files from "./export.js";
import {Feedback} from "./feedback.js";
import {Picture} from "./picture.js";
import {Stage} from "./stage.js";
import {ClassifyView} from "./views/classify.js";
import {CompareView} from "./views/compare.js";
import {CorrespondView} from "./views/correspond.js";
import {ExplainView} from "./views/explain.js";
import {SegmentView} from "./views/segment.js";
import {TokensView} from "./views/tokens.js";

const VIEWS = [TokensView, ClassifyView, ExplainView, SegmentView, CorrespondView, CompareView];
const at = (id) => document.getElementById(id);

class App {
  constructor(about) {
    this.about = about;
    this.feedback = new Feedback();
    this.options = {max_tokens: null, compactness: null, refine: null, tokenizer: "superpixel", model: about.model};
    this.picture = null;
    this.stage = new Stage();
    this.views = VIEWS.map((View) => new View(this));
    this.single = h("div", {class: "single"}, this.stage.element);
    this.view = null;
    this._tabs();
    this._inputs();
    connectTheme(at("theme"), () => this._accent());
  }

  say(text) { this.feedback.say(text); }

  // --- pictures -----------------------------------------------------------------------------------------------------

  /** Send a picture and fetch what the views need; null if it failed, with the reason on the page. */
  async analyse(file, options, title = file.name) {
    const {limits = {}} = this.about;
    this.feedback.clear();
    if (limits.bytes && file.size > limits.bytes) {
      this.feedback.fail(`${file.name} has ${megabytes(file.size)}; the server takes up to ${megabytes(limits.bytes)}. ` +
        "Save it smaller and try again.");
      return null;
    }
    if (file.type && !file.type.startsWith("image/")) {
      this.feedback.fail(`${file.name} is not a picture. Choose a PNG, JPEG, WebP, GIF, BMP or TIFF file.`);
      return null;
    }
    const task = this.feedback.begin(`Sending ${title}`);
    try {
      const form = new FormData();
      form.append("image", file, file.name);
      const kept = options.tokenizer === "superpixel" ? options : {...options, max_tokens: null, compactness: null, refine: null};
      for (const [name, value] of Object.entries(kept)) if (value !== null && value !== undefined) form.append(name, value);
      const about = await api.upload("explorer/pictures", form, (share) => {
        if (share < 1) task.tell(share);
        else task.rename(`Reading ${title}`);
      });
      task.rename(`Loading the tokens of ${title}`);
      return await Picture.load(about, api.pictureSource(about.id), file, {...options});
    } catch (error) {
      this.feedback.fail(error);
      return null;
    } finally {
      task.end();
    }
  }

  async open(file) {
    const asked = (this.asked = {});
    const picture = await this.analyse(file, this.options);
    if (picture && asked === this.asked) this.setPicture(picture);
  }

  /** Other options for the same picture, after the last change has rested a moment. */
  change(values) {
    Object.assign(this.options, values);
    clearTimeout(this.waiting);
    if (this.picture) this.waiting = setTimeout(() => this.open(this.picture.file), 200);
  }

  setPicture(picture) {
    this.picture = picture;
    at("welcome").hidden = true;
    at("view").hidden = false;
    at("tabs").hidden = at("open").hidden = false;
    document.title = `${picture.file.name} · spit explorer`;
    this.stage.setPicture(picture);
    this.stage.caption.replaceChildren(h("span", {}, picture.file.name),
      h("span", {class: "mono"}, `${number(picture.width)} × ${number(picture.height)} px · ${number(picture.tokens)} tokens`));
    this.views.forEach((view) => view.setPicture(picture));
    this._accent();
    this.select(this.view ?? this.views[0]);
    this.say(`${picture.file.name}, ${picture.tokens} tokens`);
  }

  /** Run something that may fail or take long. */
  async attempt(run, text) {
    const task = this.feedback.begin(text);
    try {
      return await run(task.tell);
    } catch (error) {
      if (error.name !== "AbortError") this.feedback.fail(error);
      return null;
    } finally {
      task.end();
    }
  }

  // --- views --------------------------------------------------------------------------------------------------------

  _tabs() {
    const tabs = this.views.map((view) => h("button", {type: "button", role: "tab", id: `tab-${view.name}`,
      "aria-controls": "view", "aria-selected": "false", tabindex: "-1", onclick: () => this.select(view)}, view.title));
    at("tabs").append(...tabs);
    at("tabs").hidden = true;
    at("tabs").addEventListener("keydown", (event) => {
      const now = tabs.indexOf(document.activeElement), last = tabs.length - 1;
      const next = {ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now ? now - 1 : last, Home: 0, End: last}[event.key];
      if (next === undefined || now < 0) return;
      event.preventDefault();
      tabs[next].focus();
      tabs[next].click();
    });
  }

  select(view) {
    this.view?.leave?.();
    if (view !== this.view) this.feedback.clear();
    this.view = view;
    for (const tab of at("tabs").children) {
      const on = tab.id === `tab-${view.name}`;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
      if (on) tab.scrollIntoView?.({block: "nearest", inline: "nearest"});
    }
    at("view").setAttribute("aria-labelledby", `tab-${view.name}`);
    at("view").classList.toggle("many", Boolean(view.wide));
    at("panel").replaceChildren(view.panel);
    this.stage.pinned = this.stage.hover = -1;
    if (!view.wide) {
      this.show(this.single, view.below);
      this.stage.fit();
    }
    view.enter();
    const shown = [...view.downloads(), ["NPZ", "labels, tokens and regions", () => this.saveArrays()], ["Picture", "as the model saw it", () => this.savePicture()]];
    at("downloads").replaceChildren(...shown.map(([kind, text, run]) =>
      h("button", {type: "button", class: "download", onclick: () => this.attempt(async () => run(), `Making ${kind}`)},
        h("span", {class: "download-kind"}, kind), h("span", {class: "hint"}, text))));
    this.settings();
  }

  show(...elements) { at("stage").replaceChildren(...elements.filter(Boolean)); }

  /** The view's settings changed: a new snippet. */
  settings() {
    clearTimeout(this.writing);
    this.writing = setTimeout(async () => {
      const {id, file} = this.picture;
      const query = new URLSearchParams();
      for (const [name, value] of Object.entries({name: file.name,
        ...this.view.settings()})) for (const one of [value ?? []].flat()) query.append(name, one);
      try {
        const found = await api.text(`explorer/pictures/${id}/snippet?${query}`);
        at("snippet").textContent = found;
      } catch (error) {
        at("snippet").textContent = `# ${error.message}`;
      }
    }, 120);
  }

  /** Explain a class that was chosen elsewhere. */
  explain(index) {
    const view = this.views.find((one) => one.name === "explain");
    view.choose(index);
    this.select(view);
    at("tab-explain").focus();
  }

  _accent() {
    const color = getComputedStyle(document.documentElement).getPropertyValue("--glow").trim();
    const rgb = [1, 3, 5].map((from) => parseInt(color.slice(from, from + 2), 16) / 255);
    if (rgb.every(Number.isFinite)) this.stage.paint({accent: rgb});
  }

  // --- files --------------------------------------------------------------------------------------------------------

  get stem() { return (this.picture.file.name.replace(/\.[^.]*$/, "") || "picture").replace(/[^\w-]+/g, "_"); }
  savePicture() { return files.save(`${this.stem}.png`, this.picture.image); }
  savePng(kind) { return files.savePng(`${this.stem}.${kind}`, files.render(this.stage)); }
  saveImage(kind, image) { return files.saveImage(`${this.stem}.${kind}`, image); }
  saveMany(kind, stages) { return files.saveMany(`${this.stem}.${kind}`, stages); }
  async saveArrays() { files.save(`${this.stem}.tokens.npz`, await api.blob(`${this.picture.at}/tokens.npz`)); }
  saveJson(kind, value) {
    const {model} = this.options;
    files.saveJson(`${this.stem}.${kind}`, {image: this.picture.file.name, width: this.picture.width,
      height: this.picture.height, tokens: this.picture.tokens, model, options: this.picture.options, ...value});
  }

  // --- inputs -------------------------------------------------------------------------------------------------------

  /** Let the user choose a file. */
  pick(then) {
    this.picked = then;
    at("file").value = "";
    at("file").click();
  }

  /** A new file goes to the view that takes several, else it is the picture. */
  take(file) {
    if (!file) return this.feedback.fail(new Error("There is no picture in that. Choose a PNG, JPEG, WebP, GIF, BMP or TIFF file."));
    if (this.view?.add && this.picture) return this.view.add(file);
    return this.open(file);
  }

  _inputs() {
    at("choose").addEventListener("click", () => this.pick((file) => this.open(file)));
    at("open").addEventListener("click", () => this.pick((file) => this.open(file)));
    at("file").addEventListener("change", () => { if (at("file").files[0]) this.picked?.(at("file").files[0]); });
    at("copy").addEventListener("click", () => this._copy());
    document.addEventListener("paste", (event) => {
      if (event.target.closest?.("input, textarea")) return;
      const item = [...(event.clipboardData?.items ?? [])].find((one) => one.kind === "file");
      if (item) {
        event.preventDefault();
        this.take(item.getAsFile());
      }
    });
    let depth = 0;
    const holds = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    addEventListener("dragenter", (event) => { if (holds(event)) at("veil").hidden = !++depth; });
    addEventListener("dragleave", (event) => { if (holds(event)) at("veil").hidden = !(depth = Math.max(0, depth - 1)); });
    addEventListener("dragover", (event) => { if (holds(event)) event.preventDefault(); });
    addEventListener("drop", (event) => {
      if (!holds(event)) return;
      event.preventDefault();
      depth = 0;
      at("veil").hidden = true;
      this.take(event.dataTransfer.files[0]);
    });
  }

  async _copy() {
    const code = at("snippet").textContent;
    try {
      await navigator.clipboard.writeText(code);
    } catch { // without the permission, or not on localhost
      getSelection().selectAllChildren(at("snippet"));
      document.execCommand("copy");
    }
    at("copy").textContent = "Copied";
    setTimeout(() => { at("copy").textContent = "Copy"; }, 1500);
  }

  /** Buttons with the sample pictures. */
  sampleList(then) {
    return h("div", {class: "samples"}, this.samples.map(({name, url, bitmap}) => {
      const canvas = h("canvas", {width: 168, height: 126, "aria-hidden": "true"});
      if (bitmap) {
        const scale = Math.max(168 / bitmap.width, 126 / bitmap.height);
        const w = 168 / scale, t = 126 / scale;
        canvas.getContext("2d").drawImage(bitmap, (bitmap.width - w) / 2, (bitmap.height - t) / 2, w, t, 0, 0, 168, 126);
      }
      return h("button", {type: "button", class: "sample", "data-sample": name, onclick: async () => {
        const blob = await this.attempt(() => api.blob(url), `Loading ${name}`);
        if (blob) then(new File([blob], `${name.replace(/\.png$/, "")}.png`, {type: blob.type || "image/png"}));
      }}, canvas, h("span", {}, title(name)));
    }));
  }

  async loadSamples() {
    const found = await api.json("explorer/samples");
    this.samples = found.map(({name, url}) => ({name, url: url.replace(/^\//, "")}));
    await Promise.all(this.samples.map(async (sample) => {
      sample.bitmap = await createImageBitmap(await api.blob(sample.url), {resizeWidth: 336, resizeQuality: "medium"});
    }));
    at("samples").replaceWith(Object.assign(this.sampleList((file) => this.open(file)), {id: "samples"}));
  }
}

const title = (name) => (name[0].toUpperCase() + name.slice(1)).replace(/\.\w+$/, "").replaceAll("_", " ");
const megabytes = (size) => `${(size / 2 ** 20).toFixed(size < 2 ** 20 * 10 ? 1 : 0)} MB`;

api.hooks.askToken = () => new Promise((resolve) => {
  const dialog = at("token");
  if (dialog.open) return dialog.addEventListener("close", () => resolve(at("token-value").value || null), {once: true});
  dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? at("token-value").value : null), {once: true});
  dialog.showModal();
});

async function start() {
  const about = {tokenizers: ["superpixel", "patch", "voronoi"], models: [], limits: {}, ...await api.json("explorer/about")};
  if (!about.models.length) about.models = [about.model];
  const app = new App(about);
  globalThis.explorer = app; // for the console and for tests
  const {bytes} = about.limits, local = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  at("limit").textContent = `${bytes ? `Up to ${megabytes(bytes)}. ` : ""}${local ? "It stays on this machine."
    : `It goes to ${location.hostname} and nowhere else.`}`;
  await app.loadSamples();
  document.body.dataset.ready = "";
}

start().catch((error) => new Feedback().fail(error));
