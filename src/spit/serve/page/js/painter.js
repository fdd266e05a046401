/**
 * Painter: a photo, regions on it and a colour for each, on a canvas.
 *
 * `regions` are what outlines and the highlighted region follow; `fill` (by default the same) are indices into `colors`,
 * RGBA of each, whose alpha times `opacity` covers the photo. WebGL 2 where there is one that is not emulated, a 2D canvas
 * else; both repaint within a frame.
 */

const VERTEX = `#version 300 es
in vec2 corner; out vec2 at;
void main() { at = corner * 0.5 + 0.5; at.y = 1.0 - at.y; gl_Position = vec4(corner, 0.0, 1.0); }`;

const FRAGMENT = `#version 300 es
precision highp float; precision highp int; precision highp usampler2D; precision highp sampler2D;
uniform sampler2D photo, colors; uniform usampler2D regions, fill;
uniform vec2 size; uniform float reach, strong, opacity, lines; uniform int hover; uniform bool fromFill, checks;
uniform vec3 accent;
in vec2 at; out vec4 color;
ivec2 cell(vec2 p) { return ivec2(clamp(p, vec2(0.0), size - 0.5)); }
int region(vec2 p) { return int(texelFetch(regions, cell(p), 0).r); }
int part(vec2 p) { return int(texelFetch(fill, cell(p), 0).r); }
bool rim(int own, vec2 p, float by) {
  return region(p + vec2(by, 0.0)) != own || region(p - vec2(by, 0.0)) != own
    || region(p + vec2(0.0, by)) != own || region(p - vec2(0.0, by)) != own;
}
bool near(int wanted, vec2 p, float by) {
  return region(p + vec2(by, 0.0)) == wanted || region(p - vec2(by, 0.0)) == wanted
    || region(p + vec2(0.0, by)) == wanted || region(p - vec2(0.0, by)) == wanted;
}
void main() {
  vec2 p = at * size; int own = region(p), index = part(p);
  vec4 over = texelFetch(colors, ivec2(index & 255, index >> 8), 0);
  vec3 found = mix(texture(photo, at).rgb, over.rgb, over.a * opacity);
  if (checks && index == 0) {
    vec2 square = floor(gl_FragCoord.xy / 12.0);
    found = vec3(mod(square.x + square.y, 2.0) < 1.0 ? 0.93 : 0.82);
  }
  bool edge = fromFill ? part(p + vec2(reach, 0.0)) != index || part(p + vec2(0.0, reach)) != index
    : region(p + vec2(reach, 0.0)) != own || region(p + vec2(0.0, reach)) != own;
  if (edge) {
    float light = dot(found, vec3(0.299, 0.587, 0.114));
    found = mix(found, light > 0.72 ? vec3(0.07, 0.08, 0.11) : vec3(1.0), lines);
  }
  if (hover >= 0) {
    if (own == hover) { if (rim(own, p, strong)) found = vec3(1.0); }
    else if (near(hover, p, strong)) found = mix(found, accent, 0.95);
  }
  color = vec4(found, 1.0);
}`;

const DEFAULTS = {opacity: 0, lines: 0.5, hover: -1, fromFill: false, checks: false};
const MOST = 320_000; // pixels that the 2D painter repaints in a frame

export function createPainter(canvas, kind = new URLSearchParams(globalThis.location?.search).get("renderer")) {
  if (kind !== "2d") {
    const context = canvas.getContext("webgl2", {alpha: false, antialias: false, preserveDrawingBuffer: true,
      failIfMajorPerformanceCaveat: kind !== "webgl"});
    if (context) {
      try {
        return new WebglPainter(canvas, context);
      } catch { // a canvas has one kind of context for life, so a new one takes its place
        const fresh = canvas.cloneNode();
        canvas.replaceWith(fresh);
        return new PlainPainter(fresh);
      }
    }
  }
  return new PlainPainter(canvas);
}

class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.style = {...DEFAULTS, accent: [1, 0.45, 0.2]};
    this.regions = this.fill = null;
    this.colors = new Uint8Array(4);
  }

  /** The photo: RGBA bytes. Regions and colours follow. */
  setPhoto(pixels, width, height) {
    Object.assign(this, {pixels, width, height});
    this.regions = this.fill = null;
  }

  setRegions(labels) {
    if (this.regions === labels) return false;
    this.regions = labels;
    return true;
  }

  setFill(labels) {
    if (this.fill === labels) return false;
    this.fill = labels;
    return true;
  }

  setStyle(style) {
    Object.assign(this.style, style);
  }

  /** Pixels of the canvas for a place on the page. */
  resize(width, height, ratio) {
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
  }
}

class WebglPainter extends Painter {
  constructor(canvas, gl) {
    super(canvas);
    this.kind = "webgl";
    this.gl = gl;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 1, -1, -1, 1, 1, 1]), gl.STATIC_DRAW);
    const corner = gl.getAttribLocation(program, "corner");
    gl.enableVertexAttribArray(corner);
    gl.vertexAttribPointer(corner, 2, gl.FLOAT, false, 0, 0);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    this.places = new Proxy({}, {get: (known, name) => (known[name] ??= gl.getUniformLocation(program, name))});
    ["photo", "regions", "fill", "colors"].forEach((name, unit) => {
      gl.activeTexture(gl.TEXTURE0 + unit);
      gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
      const filter = name === "photo" ? gl.LINEAR : gl.NEAREST;
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, filter);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, filter);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
      gl.uniform1i(this.places[name], unit);
    });
    this.setColors(this.colors);
  }

  setPhoto(pixels, width, height) {
    super.setPhoto(pixels, width, height);
    const {gl} = this;
    gl.activeTexture(gl.TEXTURE0);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(pixels.buffer));
  }

  _labels(unit, labels) {
    const {gl} = this;
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.R16UI, this.width, this.height, 0, gl.RED_INTEGER, gl.UNSIGNED_SHORT, labels);
  }

  setRegions(labels) {
    if (super.setRegions(labels)) this._labels(1, labels);
  }

  setFill(labels, changed = false) {
    if (super.setFill(labels) || changed) this._labels(2, labels);
  }

  setColors(colors) {
    this.colors = colors;
    const {gl} = this, rows = Math.max(1, Math.ceil(colors.length / 1024)), padded = new Uint8Array(rows * 1024);
    padded.set(colors);
    gl.activeTexture(gl.TEXTURE3);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, rows, 0, gl.RGBA, gl.UNSIGNED_BYTE, padded);
  }

  draw() {
    if (!this.regions || !this.fill) return;
    const {gl, places, style} = this, scale = this.canvas.width / this.width;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.uniform2f(places.size, this.width, this.height);
    gl.uniform1f(places.reach, Math.max((1.1 * this.ratio) / scale, 0.5 / scale));
    gl.uniform1f(places.strong, (1.9 * this.ratio) / scale);
    gl.uniform1f(places.opacity, style.opacity);
    gl.uniform1f(places.lines, style.lines);
    gl.uniform1i(places.hover, style.hover);
    gl.uniform1i(places.fromFill, style.fromFill ? 1 : 0);
    gl.uniform1i(places.checks, style.checks ? 1 : 0);
    gl.uniform3f(places.accent, ...style.accent);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }
}

export class PlainPainter extends Painter {
  constructor(canvas) {
    super(canvas);
    this.kind = "2d";
    this.context = canvas.getContext("2d", {alpha: false});
  }

  setPhoto(pixels, width, height) {
    super.setPhoto(pixels, width, height);
    this.photo = new OffscreenCanvas(width, height);
    this.photo.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels), width, height), 0, 0);
    this.base = null;
  }

  resize(width, height, ratio) {
    const fewer = Math.min(ratio, Math.sqrt(MOST / Math.max(1, width * height)));
    super.resize(width, height, fewer);
    this.base = null;
  }

  setRegions(labels) {
    if (super.setRegions(labels)) this.edges = this.boxes = null;
  }

  setFill(labels, changed = false) {
    if (super.setFill(labels) || changed) this.fillEdges = null;
  }

  setColors(colors) {
    this.colors = colors;
  }

  _prepare() {
    const {width, height} = this.canvas;
    if (!this.base) {
      const scaled = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
      scaled.imageSmoothingQuality = "high";
      scaled.drawImage(this.photo, 0, 0, width, height);
      this.base = scaled.getImageData(0, 0, width, height).data;
      this.result = new ImageData(width, height);
      this.source = new Int32Array(width * height);
      const columns = Int32Array.from({length: width}, (_, x) => Math.floor(((x + 0.5) * this.width) / width));
      for (let y = 0, i = 0; y < height; y++) {
        const row = Math.floor(((y + 0.5) * this.height) / height) * this.width;
        for (let x = 0; x < width; x++, i++) this.source[i] = row + columns[x];
      }
      this.edges = this.fillEdges = this.boxes = null;
    }
    if (this.style.fromFill) this.fillEdges ??= this._edges(this.fill);
    else this.edges ??= this._edges(this.regions);
  }

  /** Pixels of the canvas whose right or lower neighbour is in another region. */
  _edges(labels) {
    const {width, height} = this.canvas, {source} = this, edges = new Uint8Array(width * height);
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const own = labels[source[i]];
        edges[i] = (x + 1 < width && labels[source[i + 1]] !== own) || (y + 1 < height && labels[source[i + width]] !== own)
          ? 1 : 0;
      }
    }
    return edges;
  }

  draw() {
    if (!this.regions || !this.fill) return;
    this._prepare();
    const {width, height} = this.canvas, {base, source, regions, fill, style, colors} = this;
    const edges = style.fromFill ? this.fillEdges : this.edges, lines = Math.round(256 * style.lines);
    const count = colors.length >> 2, cover = new Int32Array(count), red = new Int32Array(count);
    const green = new Int32Array(count), blue = new Int32Array(count), opacity = Math.round(256 * style.opacity);
    for (let n = 0; n < count; n++) {
      const alpha = (colors[4 * n + 3] * opacity) >> 8;
      const share = Math.round((alpha * 256) / 255);
      cover[n] = 256 - share;
      red[n] = colors[4 * n] * share;
      green[n] = colors[4 * n + 1] * share;
      blue[n] = colors[4 * n + 2] * share;
    }
    const out = new Uint32Array(this.result.data.buffer), total = width * height;
    const {checks} = style;
    for (let i = 0, j = 0; i < total; i++, j += 4) {
      const index = fill[source[i]], left = cover[index];
      let r = (base[j] * left + red[index]) >> 8, g = (base[j + 1] * left + green[index]) >> 8;
      let b = (base[j + 2] * left + blue[index]) >> 8;
      if (checks && index === 0) r = g = b = (((i % width) / 10) ^ (i / width / 10)) & 1 ? 237 : 209;
      if (edges[i]) {
        const ink = 77 * r + 150 * g + 29 * b > 47000 ? 20 : 255;
        r += ((ink - r) * lines) >> 8;
        g += ((ink - g) * lines) >> 8;
        b += ((ink - b) * lines) >> 8;
      }
      out[i] = 0xff000000 | (b << 16) | (g << 8) | r;
    }
    if (style.hover >= 0) this._outline(out, regions, style.hover, style.accent);
    this.context.putImageData(this.result, 0, 0);
  }

  /** Where each region is on the canvas: left, top, right and bottom. */
  _boxes(regions) {
    const {width, height} = this.canvas, {source} = this, boxes = new Int32Array(4 * 65536);
    for (let n = 0; n < boxes.length; n += 4) { boxes[n] = width; boxes[n + 1] = height; boxes[n + 2] = boxes[n + 3] = -1; }
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const n = 4 * regions[source[i]];
        if (x < boxes[n]) boxes[n] = x;
        if (y < boxes[n + 1]) boxes[n + 1] = y;
        if (x > boxes[n + 2]) boxes[n + 2] = x;
        boxes[n + 3] = y;
      }
    }
    return boxes;
  }

  /** White inside the region's rim, the accent outside. */
  _outline(out, regions, label, ink) {
    const {width, height} = this.canvas, {source} = this, by = Math.max(1, Math.round(1.9 * this.ratio));
    const color = 0xff000000 | (Math.round(255 * ink[2]) << 16) | (Math.round(255 * ink[1]) << 8) | Math.round(255 * ink[0]);
    this.boxes ??= this._boxes(regions);
    const [x0, y0, x1, y1] = this.boxes.subarray(4 * label, 4 * label + 4);
    for (let y = Math.max(0, y0 - by); y <= Math.min(height - 1, y1 + by); y++) {
      for (let x = Math.max(0, x0 - by); x <= Math.min(width - 1, x1 + by); x++) {
        const i = y * width + x;
        const inside = regions[source[i]] === label;
        if ((x >= by && (regions[source[i - by]] === label) !== inside)
          || (x + by < width && (regions[source[i + by]] === label) !== inside)
          || (y >= by && (regions[source[i - by * width]] === label) !== inside)
          || (y + by < height && (regions[source[i + by * width]] === label) !== inside)) {
          out[i] = inside ? 0xffffffff : color;
        }
      }
    }
  }
}
