/** Views as files: PNG at the picture's own pixels, and JSON. */

import {save} from "./dom.js";

import {Painter} from "./painter.js";

/** A stage at its picture's own pixels, without the highlighted token's neighbours being lost to the screen's size. */
export function render({picture, painter}) {
  const canvas = new OffscreenCanvas(1, 1), copy = new Painter(canvas);
  copy.setPhoto(picture.pixels, picture.width, picture.height);
  copy.ratio = 1;
  canvas.width = picture.width;
  canvas.height = picture.height;
  copy.setRegions(painter.regions);
  copy.setFill(painter.fill);
  copy.setColors(painter.colors);
  copy.setStyle({...painter.style});
  copy.draw();
  return canvas;
}

export async function savePng(name, canvas) {
  save(`${name}.png`, await canvas.convertToBlob({type: "image/png"}));
}

export async function saveImage(name, image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").putImageData(image, 0, 0);
  await savePng(name, canvas);
}

/** Stages beside each other, all of one height. */
export async function saveMany(name, stages) {
  const drawn = stages.map(render), height = Math.max(...drawn.map((one) => one.height)), gap = 12;
  const widths = drawn.map((one) => Math.round((one.width * height) / one.height));
  const canvas = new OffscreenCanvas(widths.reduce((sum, width) => sum + width + gap, -gap), height);
  const context = canvas.getContext("2d");
  let x = 0;
  drawn.forEach((one, n) => {
    context.drawImage(one, x, 0, widths[n], height);
    x += widths[n] + gap;
  });
  await savePng(name, canvas);
}

export {save};
export const saveJson = (name, value) =>
  save(`${name}.json`, new Blob([JSON.stringify(value, null, 1)], {type: "application/json"}));
