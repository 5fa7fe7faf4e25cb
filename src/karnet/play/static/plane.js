// The plane: points and settings go to the server, pictures come back. Nothing is fitted here.

import { Connection, byId, colour, copy, element, fromFragment, rgb, settled, shortNumber, toFragment } from "./common.js";

const LOW = -0.2, HIGH = 1.2;
const CLASSES = 4;
const INVERTIBLE = ["logit", "logit_clipped", "sigmoid", "tanh", "arctan", "asinh", "softplus", "leaky_relu", "identity"];
const FURTHER = ["relu", "sin", "cos", "gelu"];
const CHOICES = {
  paper: INVERTIBLE,
  random: [...INVERTIBLE, ...FURTHER],
  metric: [...INVERTIBLE, ...FURTHER],
  infinite: ["relu", "cos", "sin"],
  cv: [],
};
const GRID_MOVING = 64, GRID_STILL = 96;

const defaults = () => ({ model: "paper", sizes: [2], activation: "logit", init: "normal", ridge: 0, bias: true,
  direct_links: false, scale: 3, seed: 0 });
const state = { task: "classes", model: defaults(), points: [], lines: true, layers: false, preset: "" };
let selected = -1, moving = false, picture = null, ridgeOfSlider = 0;
const undone = [];
const times = [];

const surface = byId("surface"), canvas = byId("points");
const connection = new Connection(answer);

// ---- State -----------------------------------------------------------------------------------

const rounded = (value) => Math.round(value * 1e4) / 1e4;

function request() {
  return {
    task: state.task,
    points: state.points.flat(),
    model: state.model,
    grid: moving ? GRID_MOVING : GRID_STILL,
    layers: state.layers,
  };
}

const keep = settled(250, () => {
  const points = state.points.flatMap(([x, y, c]) => [Math.round(x * 1e4), Math.round(y * 1e4), c]);
  const fragment = toFragment({ v: 1, t: state.task, m: state.model, l: state.lines, k: state.layers, s: state.preset, p: points });
  history.replaceState(null, "", `#${fragment}`);
});

function refit() {
  connection.send("fit", request);
  keep();
}

const settle = settled(200, () => {
  if (moving) return;
  refit();
});

function changed() {
  drawPoints();
  refit();
}

function remember() {
  undone.push(JSON.stringify(state.points));
  if (undone.length > 50) undone.shift();
}

function restored(found) {
  if (!found || found.v !== 1 || !Array.isArray(found.p)) return false;
  state.task = found.t === "curve" ? "curve" : "classes";
  state.model = { ...defaults(), ...found.m };
  state.lines = found.l !== false;
  state.layers = found.k === true;
  state.preset = String(found.s ?? "");
  state.points = [];
  for (let k = 0; k + 2 < found.p.length; k += 3) {
    state.points.push([found.p[k] / 1e4, found.p[k + 1] / 1e4, found.p[k + 2]]);
  }
  selected = -1;
  return true;
}

// ---- Answers ---------------------------------------------------------------------------------

function answer(values, arrays) {
  if (values.error) {
    byId("notice").textContent = values.error;
    byId("notice").hidden = false;
    if (values.kind === "fit") {
      picture = null;
      drawSurface();
      say(values.error);
    }
    return;
  }
  byId("notice").hidden = true;
  if (values.preset) take(values);
  else if (values.code !== undefined) showCode(values.code);
  else show(values, arrays);
}

function take(values) {
  remember();
  state.task = values.task;
  state.model = { ...defaults(), ...values.model, seed: state.model.seed };
  state.preset = values.preset;
  state.points = [];
  for (let k = 0; k < values.points.length; k += 3) state.points.push(values.points.slice(k, k + 3));
  selected = -1;
  controls();
  changed();
}

function show(values, arrays) {
  picture = { values, arrays };
  drawSurface();
  const now = performance.now();
  times.push(now);
  while (times[0] < now - 1000) times.shift();
  figures(values);
  spectrum(values.spectra);
  multiples(values.targets);
  document.body.dataset.pictures = String(Number(document.body.dataset.pictures ?? 0) + 1);
  if (document.body.dataset.first === undefined) document.body.dataset.first = String(Date.now());
  announce();
}

const percent = (values, score) => values.score_name === "accuracy" ? `${(100 * score).toFixed(1)} %` : score.toFixed(3);

function figures(values) {
  const name = values.score_name;
  byId("score-train").textContent = `${name} ${percent(values, values.score)}`;
  byId("score-left-out").textContent = values.left_out === null ? "" : `leave-one-out ${percent(values, values.left_out)}`;
  byId("f-n").textContent = values.n;
  byId("f-ridge").textContent = values.ridge === null ? "selected" : shortNumber(values.ridge, 2);
  byId("f-fit").textContent = `${values.fit_ms.toFixed(1)} ms`;
  byId("f-all").textContent = `${values.ms.toFixed(1)} ms`;
  byId("f-rate").textContent = times.length > 1 ? times.length : "–";
  byId("f-how").textContent = values.how;
  if (state.model.ridge === null) byId("ridge-out").textContent = shortNumber(values.ridge, 2);
  byId("layers").tBodies[0].replaceChildren(...values.layers.map((layer) => element("tr", {},
    element("td", {}, layer.name), element("td", {}, String(layer.rank ?? "–")), element("td", {}, layer.solver),
    element("td", {}, shortNumber(layer.residual, 2)))));
}

const announce = settled(700, () => {
  if (!picture) return;
  const { values } = picture;
  const left = values.left_out === null ? "" : `, leave-one-out ${percent(values, values.left_out)}`;
  say(`${values.n} points, ${values.score_name} ${percent(values, values.score)}${left}.`);
});

function say(text) {
  byId("live").textContent = text;
}

// ---- Drawing ---------------------------------------------------------------------------------

function fitted(view) {
  const size = Math.max(view.clientWidth, 1) * Math.min(devicePixelRatio || 1, 2);
  if (view.width !== Math.round(size)) view.width = view.height = Math.round(size);
  return view.getContext("2d");
}

const toPixel = (view, x, y) => [((x - LOW) / (HIGH - LOW)) * view.width, ((HIGH - y) / (HIGH - LOW)) * view.height];

function drawSurface() {
  const context = fitted(surface);
  context.clearRect(0, 0, surface.width, surface.height);
  frame(context);
  if (!picture) return;
  if (picture.arrays.surface) {
    shade(context, picture.arrays.surface, picture.values.classes);
    if (state.lines) unitLines(context, picture.arrays.lines);
    boundaries(context, picture.arrays.surface);
  } else if (picture.arrays.curve) curve(context, picture.arrays.curve.values);
}

// The unit square, in which the paper's inputs lie.
function frame(context) {
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;
  const [left, bottom] = toPixel(surface, 0, 0), [right, top] = toPixel(surface, 1, 1);
  context.strokeRect(left, top, right - left, bottom - top);
}

const small = document.createElement("canvas");

function shade(context, { shape: [q, n], values }, classes) {
  small.width = small.height = n;
  const image = new ImageData(n, n), ground = rgb(colour("--ground"));
  const colours = classes.map((k) => rgb(colour(`--c${k}`)));
  const base = 1 / q;
  for (let row = 0; row < n; row++) {
    for (let column = 0; column < n; column++) {
      const to = 4 * ((n - 1 - row) * n + column);
      const mixed = [0, 0, 0];
      let largest = 0;
      for (let k = 0; k < q; k++) {
        const p = values[k * n * n + row * n + column];
        largest = Math.max(largest, p);
        for (let j = 0; j < 3; j++) mixed[j] += p * colours[k][j];
      }
      const strength = 0.1 + 0.4 * Math.min(1, Math.max(0, (largest - base) / (1 - base)));
      for (let j = 0; j < 3; j++) image.data[to + j] = ground[j] + strength * (mixed[j] - ground[j]);
      image.data[to + 3] = 255;
    }
  }
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, surface.width, surface.height);
  frame(context);
}

// Lines between classes: where the largest probability changes hands, by linear interpolation.
function boundaries(context, { shape: [q, n], values }) {
  context.strokeStyle = colour("--ink");
  context.lineWidth = 1.6 * surface.width / 600;
  context.beginPath();
  const step = surface.width / n, lead = new Float32Array(n * n);
  for (let k = 0; k < (q === 2 ? 1 : q); k++) {
    for (let i = 0; i < n * n; i++) {
      let other = -Infinity;
      for (let j = 0; j < q; j++) if (j !== k) other = Math.max(other, values[j * n * n + i]);
      lead[i] = values[k * n * n + i] - other;
    }
    for (let row = 0; row + 1 < n; row++) for (let column = 0; column + 1 < n; column++) cell(context, lead, n, row, column, step);
  }
  context.stroke();
}

function cell(context, f, n, row, column, step) {
  const at = (r, c) => f[r * n + c];
  const corners = [[row, column], [row, column + 1], [row + 1, column + 1], [row + 1, column]];
  const crossings = [];
  for (let k = 0; k < 4; k++) {
    const [r0, c0] = corners[k], [r1, c1] = corners[(k + 1) % 4];
    const a = at(r0, c0), b = at(r1, c1);
    if (a > 0 === b > 0) continue;
    const t = a / (a - b);
    crossings.push([(c0 + t * (c1 - c0) + 0.5) * step, surface.height - (r0 + t * (r1 - r0) + 0.5) * step]);
  }
  for (let k = 0; k + 1 < crossings.length; k += 2) {
    context.moveTo(...crossings[k]);
    context.lineTo(...crossings[k + 1]);
  }
}

function unitLines(context, { shape: [h], values }) {
  context.strokeStyle = colour("--ink");
  context.globalAlpha = h > 40 ? 0.13 : 0.35;
  context.lineWidth = surface.width / 600;
  context.beginPath();
  for (let k = 0; k < h; k++) {
    const a = values[3 * k], b = values[3 * k + 1], c = values[3 * k + 2];
    const far = 4, size = Math.hypot(a, b);
    if (!(size > 0)) continue;
    const x = 0.5 - (a * (0.5 * a + 0.5 * b + c)) / size ** 2, y = 0.5 - (b * (0.5 * a + 0.5 * b + c)) / size ** 2;
    context.moveTo(...toPixel(surface, x - (far * b) / size, y + (far * a) / size));
    context.lineTo(...toPixel(surface, x + (far * b) / size, y - (far * a) / size));
  }
  context.stroke();
  context.globalAlpha = 1;
}

function curve(context, values) {
  context.strokeStyle = colour("--c1");
  context.lineWidth = 2.5 * surface.width / 600;
  context.lineJoin = "round";
  context.beginPath();
  for (let k = 0; k < values.length; k += 2) {
    const [x, y] = toPixel(surface, values[k], Math.max(-50, Math.min(50, values[k + 1])));
    if (k) context.lineTo(x, y);
    else context.moveTo(x, y);
  }
  context.stroke();
}

function marker(context, x, y, kind, r) {
  context.beginPath();
  if (kind === 0) context.arc(x, y, r, 0, 7);
  else if (kind === 1) context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else {
    const corners = kind === 2 ? [-90, 30, 150] : [-90, 0, 90, 180];
    for (const angle of corners) context.lineTo(x + 1.25 * r * Math.cos((angle * Math.PI) / 180), y + 1.25 * r * Math.sin((angle * Math.PI) / 180));
    context.closePath();
  }
}

function drawPoints() {
  const context = fitted(canvas);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const unit = canvas.width / 600;
  const r = unit * (state.points.length > 1000 ? 2.5 : state.points.length > 300 ? 4 : 6);
  const colours = Array.from({ length: CLASSES }, (_, k) => colour(`--c${k}`)), edge = colour("--ground");
  context.strokeStyle = edge;
  context.lineWidth = (state.points.length > 1000 ? 0.6 : 1.5) * unit;
  for (const [x, y, c] of state.points) {
    const kind = state.task === "curve" ? 0 : c;
    marker(context, ...toPixel(canvas, x, y), kind, r);
    context.fillStyle = colours[kind];
    context.fill();
    context.stroke();
  }
  if (selected >= 0 && selected < state.points.length) {
    const [x, y] = toPixel(canvas, state.points[selected][0], state.points[selected][1]);
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2 * unit;
    context.beginPath();
    context.arc(x, y, r + 5 * unit, 0, 7);
    context.stroke();
  }
}

function spectrum(spectra) {
  const width = 280, height = 150, left = 34, bottom = 18, svg = byId("spectrum");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const most = Math.max(2, ...spectra.map((each) => each.values.length));
  const x = (k) => left + ((width - left - 6) * Math.log(k)) / Math.log(most);
  const y = (value) => 6 + ((height - bottom - 10) * -Math.log10(Math.max(value, 1e-18))) / 18;
  const parts = [];
  for (const exponent of [0, -6, -12, -18]) {
    parts.push(element("line", { class: "axis", x1: left, x2: width - 4, y1: y(10 ** exponent), y2: y(10 ** exponent) }));
    parts.push(element("text", { x: left - 4, y: y(10 ** exponent) + 4, "text-anchor": "end" }, exponent ? `1e${exponent}` : "1"));
  }
  spectra.slice(0, 6).forEach((each, k) => {
    const stroke = `stroke: var(--c${k % CLASSES})`;
    const points = each.values.map((value, i) => `${x(i + 1).toFixed(1)} ${y(value).toFixed(1)}`);
    const path = element("path", { class: "curve", d: `M${points.join("L")}` });
    path.style.stroke = `var(--c${k % CLASSES})`;
    parts.push(path);
    if (each.values.length === 1) {
      const dot = element("circle", { cx: x(1), cy: y(each.values[0]), r: 3 });
      dot.style.fill = `var(--c${k % CLASSES})`;
      parts.push(dot);
    }
    const cut = element("line", { class: "dotted", x1: left, x2: width - 4, y1: y(each.rcond), y2: y(each.rcond) });
    cut.style.stroke = `var(--c${k % CLASSES})`;
    parts.push(cut);
    const text = element("text", { x: left + 6, y: height - bottom - 8 - 13 * (Math.min(spectra.length, 6) - 1 - k) }, `${each.name}: rank ${each.rank} of ${each.columns}`);
    text.style.fill = `var(--c${k % CLASSES})`;
    parts.push(text);
  });
  parts.push(element("text", { x: width - 4, y: height - 4, "text-anchor": "end" }, `index, 1 to ${most}`));
  svg.replaceChildren(...parts);
}

function multiples(targets) {
  byId("multiples").hidden = !targets.length;
  const place = byId("small");
  while (place.children.length > targets.length) place.lastChild.remove();
  while (place.children.length < targets.length) {
    place.append(element("figure", {}, element("canvas", { role: "img" }), element("figcaption")));
  }
  targets.forEach((layer, k) => {
    const [view, caption] = place.children[k].children;
    caption.textContent = `${layer.name}: ${layer.units} ${layer.units === 1 ? "unit" : "units"}, residual ${shortNumber(layer.residual, 2)}`;
    view.setAttribute("aria-label", `Targets and outputs of ${caption.textContent}`);
    const context = fitted(view), unit = view.width / 180;
    context.clearRect(0, 0, view.width, view.height);
    const at = (values, i) => [view.width * (0.08 + 0.84 * values[2 * i]), view.height * (0.92 - 0.84 * values[2 * i + 1])];
    const colours = Array.from({ length: CLASSES }, (_, c) => colour(`--c${c}`));
    const seen = new Set();
    layer.rows.forEach((row, i) => {
      const c = state.task === "curve" ? 0 : state.points[row]?.[2] ?? 0;
      context.fillStyle = colours[c];
      context.globalAlpha = 0.65;
      context.beginPath();
      context.arc(...at(layer.outputs, i), 2.4 * unit, 0, 7);
      context.fill();
      context.globalAlpha = 1;
    });
    layer.rows.forEach((row, i) => {
      const place = at(layer.targets, i), key = place.join();
      if (seen.has(key)) return;
      seen.add(key);
      context.strokeStyle = state.task === "curve" ? colours[1] : colours[state.points[row]?.[2] ?? 0];
      context.lineWidth = 2 * unit;
      context.beginPath();
      context.arc(...place, (state.task === "curve" ? 3 : 6) * unit, 0, 7);
      context.stroke();
    });
  });
}

// ---- Pointer and keys ------------------------------------------------------------------------

const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;

function place(event) {
  const box = canvas.getBoundingClientRect();
  const x = LOW + ((event.clientX - box.left) / box.width) * (HIGH - LOW);
  const y = HIGH - ((event.clientY - box.top) / box.height) * (HIGH - LOW);
  return [inside(x), inside(y)];
}

const inside = (value) => rounded(Math.min(HIGH, Math.max(LOW, value)));

function nearest([x, y], reach) {
  let best = -1, least = reach ** 2;
  state.points.forEach(([a, b], k) => {
    const d = (a - x) ** 2 + (b - y) ** 2;
    if (d <= least) [best, least] = [k, d];
  });
  return best;
}

function brush([x, y]) {
  for (let k = 0; k < 3; k++) {
    const angle = 2 * Math.PI * Math.random(), far = 0.07 * Math.sqrt(Math.random());
    state.points.push([inside(x + far * Math.cos(angle)), inside(y + far * Math.sin(angle)), Number(chosen("class"))]);
  }
}

function erase(where) {
  const k = nearest(where, 0.035);
  if (k < 0) return;
  state.points.splice(k, 1);
  selected = -1;
}

const reach = (event) => (event.pointerType === "touch" ? 0.05 : 0.025);

canvas.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  canvas.setPointerCapture(event.pointerId);
  moving = true;
  remember();
  state.preset = "";
  byId("preset").value = "";
  const where = place(event), tool = chosen("tool");
  if (tool === "brush") brush(where);
  else if (tool === "erase") erase(where);
  else {
    selected = nearest(where, reach(event));
    if (selected < 0) selected = state.points.push([...where, Number(chosen("class"))]) - 1;
  }
  changed();
});

canvas.addEventListener("pointermove", (event) => {
  if (!moving) return;
  const where = place(event), tool = chosen("tool");
  if (tool === "brush") brush(where);
  else if (tool === "erase") erase(where);
  else if (state.points[selected]) state.points[selected].splice(0, 2, ...where);
  changed();
});

for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, () => {
    if (!moving) return;
    moving = false;
    settle();
  });
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

canvas.addEventListener("keydown", (event) => {
  const n = state.points.length, point = state.points[selected];
  if (ARROWS[event.key] && point) {
    const [dx, dy] = ARROWS[event.key], step = event.shiftKey ? 0.1 : 0.01;
    point[0] = inside(point[0] + step * dx);
    point[1] = inside(point[1] + step * dy);
  } else if (event.key === "Enter") {
    remember();
    selected = state.points.push([0.5, 0.5, Number(chosen("class"))]) - 1;
  } else if ((event.key === "Delete" || event.key === "Backspace") && point) {
    remember();
    state.points.splice(selected, 1);
    selected = Math.min(selected, n - 2);
  } else if (event.key === "PageDown" || event.key === "PageUp") {
    if (n) selected = (selected + (event.key === "PageDown" ? 1 : n - 1 + (selected < 0))) % n;
    event.preventDefault();
    drawPoints();
    const [x, y, c] = state.points[selected] ?? [0, 0, 0];
    say(n ? `Point ${selected + 1} of ${n}, class ${"ABCD"[c]}, at ${x.toFixed(2)}, ${y.toFixed(2)}.` : "There are no points.");
    return;
  } else if ("1234".includes(event.key)) {
    document.querySelector(`input[name=class][value="${Number(event.key) - 1}"]`).checked = true;
    return;
  } else return;
  event.preventDefault();
  state.preset = byId("preset").value = "";
  changed();
});

// ---- Controls --------------------------------------------------------------------------------

const unitsOf = (slider) => Math.max(1, Math.round(10 ** ((3 * slider) / 100)));
const sliderOf = (units) => Math.round((100 * Math.log10(units)) / 3);
const ridgeOf = (slider) => (slider <= -11 ? 0 : 10 ** slider);

function controls() {
  const model = state.model;
  byId("task").value = state.task;
  byId("model").value = model.model;
  byId("preset").value = state.preset;
  byId("classes").hidden = state.task === "curve";
  const allowed = CHOICES[model.model] ?? [];
  if (allowed.length && !allowed.includes(model.activation)) model.activation = allowed[0];
  byId("activation").replaceChildren(...allowed.map((name) => element("option", {}, name)));
  byId("activation").value = model.activation;
  byId("init").value = model.init;
  byId("depth").value = model.sizes.length;
  byId("units").value = sliderOf(model.sizes[0] ?? 10);
  byId("units-out").textContent = model.sizes.length ? [...new Set(model.sizes)].join(", ") : "none";
  if (model.ridge !== null) ridgeOfSlider = model.ridge;
  byId("by-loo").checked = model.ridge === null;
  byId("ridge").disabled = model.ridge === null;
  byId("ridge").value = ridgeOfSlider > 0 ? Math.log10(ridgeOfSlider) : -11;
  byId("ridge-out").textContent = model.ridge === null ? "" : model.ridge === 0 ? "none" : shortNumber(model.ridge, 2);
  byId("bias").checked = model.bias;
  byId("direct-links").checked = model.direct_links;
  byId("scale").value = Math.round(10 * Math.log10(model.scale));
  byId("scale-out").textContent = `± ${shortNumber(model.scale, 2)}`;
  byId("seed").value = model.seed;
  byId("show-lines").checked = state.lines;
  byId("show-targets").checked = state.layers;
  byId("show-targets").disabled = model.model !== "paper";
  for (const each of document.querySelectorAll("[data-for]")) each.hidden = !each.dataset.for.split(" ").includes(model.model);
}

function onChange(id, change, event = "input") {
  byId(id).addEventListener(event, () => {
    if (change(byId(id)) === false) return;
    controls();
    changed();
  });
}

const wholeNumber = (input, low, high) => Math.min(high, Math.max(low, Math.round(Number(input.value) || 0)));

onChange("task", (input) => { state.task = input.value; }, "change");
onChange("model", (input) => {
  const model = state.model;
  model.model = input.value;
  if (input.value === "paper") Object.assign(model, { ridge: 0, activation: "logit", init: "normal", sizes: model.sizes.map(() => 10) });
  else if (input.value === "infinite") Object.assign(model, { ridge: null, activation: "relu", init: "normal", sizes: model.sizes.length ? model.sizes : [1] });
  else if (input.value !== "cv") Object.assign(model, { ridge: null, activation: "tanh", init: "normal", sizes: (model.sizes.length ? model.sizes : [1]).map(() => 100) });
}, "change");
onChange("depth", (input) => {
  if (input.value === "") return false;
  const n = wholeNumber(input, 0, 5), width = state.model.sizes[0] ?? unitsOf(byId("units").value);
  state.model.sizes = Array.from({ length: n }, () => width);
});
onChange("units", (input) => { state.model.sizes = state.model.sizes.map(() => unitsOf(input.value)); });
onChange("activation", (input) => { state.model.activation = input.value; }, "change");
onChange("init", (input) => { state.model.init = input.value; }, "change");
onChange("scale", (input) => { state.model.scale = Number((10 ** (input.value / 10)).toPrecision(2)); });
onChange("ridge", (input) => { state.model.ridge = Number(ridgeOf(Number(input.value)).toPrecision(3)); });
onChange("by-loo", (input) => { state.model.ridge = input.checked ? null : ridgeOfSlider; }, "change");
onChange("bias", (input) => { state.model.bias = input.checked; }, "change");
onChange("direct-links", (input) => { state.model.direct_links = input.checked; }, "change");
onChange("seed", (input) => {
  if (input.value === "") return false;
  state.model.seed = wholeNumber(input, 0, 9999);
});
onChange("again", () => { state.model.seed = (state.model.seed + 1) % 10000; }, "click");
onChange("show-lines", (input) => { state.lines = input.checked; drawSurface(); }, "change");
onChange("show-targets", (input) => { state.layers = input.checked; }, "change");
onChange("clear", () => { remember(); state.points = []; state.preset = ""; selected = -1; }, "click");
onChange("undo", () => {
  if (!undone.length) return false;
  state.points = JSON.parse(undone.pop());
  state.preset = "";
  selected = -1;
}, "click");
byId("preset").addEventListener("change", () => {
  if (byId("preset").value) connection.send("preset", { name: byId("preset").value, seed: 0 });
});
byId("python").addEventListener("click", () => connection.send("code", request));
byId("share").addEventListener("click", () => copy(location.href, "The address is copied."));

function showCode(code) {
  byId("code").textContent = code;
  byId("code").hidden = false;
  copy(code, "The lines are copied.");
}

// ---- Start -----------------------------------------------------------------------------------

function redraw() {
  drawSurface();
  drawPoints();
  if (picture) multiples(picture.values.targets);
}

addEventListener("hashchange", () => {
  if (!restored(fromFragment(location.hash.slice(1)))) return;
  controls();
  changed();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new ResizeObserver(redraw).observe(byId("stage"));

const found = restored(fromFragment(location.hash.slice(1)));
controls();
drawPoints();
if (found) refit();
else connection.send("preset", { name: "xor", seed: 0 });
connection.onOpen = () => {
  if (state.points.length) connection.send("fit", request);
};
