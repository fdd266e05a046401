/** The explorer's tokens in a notebook: an anywidget on data that Python sends once. */

import {h} from "./dom.js";
import {Picture} from "./picture.js";
import {Stage} from "./stage.js";
import {TokensView} from "./views/tokens.js";

const bytes = (view) => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);

/** The notebook's own colours: JupyterLab says which, else the system. */
function isDark() {
  const lab = document.body.dataset.jpThemeLight;
  return lab ? lab === "false" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** The attention of a layer, which Python sends when the layer is set. */
function askAttention(model) {
  return (layer) => new Promise((resolve) => {
    const answer = () => {
      if (model.get("attention_layer") !== layer) return;
      model.off("change:attention", answer);
      resolve(bytes(model.get("attention")));
    };
    model.on("change:attention", answer);
    model.set("layer", layer);
    model.save_changes();
    if (model.get("attention_layer") === layer && model.get("attention").byteLength) answer();
  });
}

async function render({model, el}) {
  const about = JSON.parse(model.get("about"));
  const read = (name) => async () => bytes(model.get(name));
  const picture = await Picture.load(about, {
    image: async () => new Blob([bytes(model.get("image"))], {type: "image/png"}), labels: read("labels"),
    parents: read("parents"), tokens: read("tokens"), regions: read("regions"), attention: askAttention(model)});
  const live = h("div", {class: "sr", "aria-live": "polite"}), stage = new Stage();
  const app = {about, options: {}, picture, stage, settings() {}, say(text) { live.textContent = text; },
    attempt: async (run) => run(() => {})};
  const view = (app.view = new TokensView(app));
  const root = h("div", {class: "spit-widget"}, h("div", {class: "work"},
    h("div", {class: "stage-column"}, stage.element, view.below), h("div", {class: "panel"}, view.panel)), live);
  root.dataset.theme = isDark() ? "dark" : "light";
  el.append(root);
  stage.setPicture(picture);
  view.setPicture(picture);
  view.enter();
  root.explorer = app; // for the console and for tests
}

export default {render};
