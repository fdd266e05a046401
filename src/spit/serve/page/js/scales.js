/** Colour scales: 256 steps from a few anchors. */

const ANCHORS = {
  ember: ["#05060a", "#2b0f3f", "#71206c", "#b93a5b", "#ee6a3a", "#fbb248", "#fdf3b5"],
  viridis: ["#440154", "#443a83", "#31688e", "#20908d", "#35b779", "#8fd744", "#fde725"],
  diverging: ["#2455a4", "#6f9fd8", "#c9dcf0", "#f5f3ef", "#f6cdb3", "#e08558", "#b0381a"],
  grey: ["#000000", "#ffffff"],
};

export const SCALES = Object.keys(ANCHORS);
const made = {};

/** 256 × 3 bytes of a scale. */
export function scale(name) {
  if (made[name]) return made[name];
  const stops = ANCHORS[name].map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  const colors = new Uint8Array(768);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at)), share = at - low;
    for (let c = 0; c < 3; c++) colors[3 * i + c] = Math.round(stops[low][c] * (1 - share) + stops[low + 1][c] * share);
  }
  return (made[name] = colors);
}

/** The scale as a CSS gradient, for legends. */
export function gradient(name) {
  return `linear-gradient(90deg, ${ANCHORS[name].join(", ")})`;
}

/** Colours, RGBA, of values brought to [0, 1] by low and high; the dark end of ember covers less, so that the photo stays. */
export function colorize(values, name, low, high, {out = null} = {}) {
  const colors = scale(name), result = out ?? new Uint8Array(4 * values.length), span = high - low || 1;
  for (let i = 0; i < values.length; i++) {
    const share = Math.min(1, Math.max(0, (values[i] - low) / span)), at = 3 * Math.round(255 * share);
    result[4 * i] = colors[at];
    result[4 * i + 1] = colors[at + 1];
    result[4 * i + 2] = colors[at + 2];
    result[4 * i + 3] = name === "ember" ? Math.round(255 * Math.min(1, 0.6 + 0.7 * share)) : 255;
  }
  return result;
}

/** Low and high for a picture: 0 in the middle for a diverging scale, else the extremes without outliers. */
export function limits(values, name) {
  const sorted = Float32Array.from(values).filter(Number.isFinite).sort();
  if (!sorted.length) return [0, 1];
  const low = sorted[Math.floor(0.01 * (sorted.length - 1))], high = sorted[Math.ceil(0.995 * (sorted.length - 1))];
  if (name !== "diverging") return [low, high > low ? high : low + 1e-6];
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  return [-most, most];
}

/** A colour of its own for each region number. */
export function distinct(count) {
  const colors = new Uint8Array(4 * count);
  for (let n = 0; n < count; n++) {
    const hue = ((n * 0.6180339887) % 1) * 6, value = 255 * (0.65 + (0.35 * (n % 5)) / 4), grey = 0.15 + (0.35 * (n % 3)) / 2;
    [0, 4, 2].forEach((turn, c) => {
      const strength = Math.min(1, Math.max(0, Math.abs(((hue + turn) % 6) - 3) - 1));
      colors[4 * n + c] = Math.round(value * (grey + (1 - grey) * strength));
    });
    colors[4 * n + 3] = 255;
  }
  return colors;
}
