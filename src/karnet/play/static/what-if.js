// What if: the cells of a row go to the server, predictions come back. Nothing is predicted here.

import { Connection, byId, copy, element, fromFragment, settled, shortNumber, toFragment } from "./common.js";

const state = { cells: {}, moved: null, coverage: 90, class: null };
let about = null, answered = null, influence = null, without = null;
const connection = new Connection(answer);

function request() {
  return { cells: state.cells, moved: state.moved, coverage: state.coverage / 100, class: state.class ?? undefined };
}

const explain = settled(150, () => connection.send("influence", request));
const keep = settled(250, () => history.replaceState(null, "", `#${toFragment({ v: 1, ...state })}`));

function ask() {
  connection.send("row", request);
  explain();
  keep();
}

function answer(values) {
  byId("notice").hidden = !values.error;
  if (values.error) {
    byId("notice").textContent = values.error;
    return;
  }
  if (values.columns) start(values);
  else if (values.cells) setCells(values.cells);
  else if (values.influential) showInfluence(values);
  else showPrediction(values);
}

// ---- The form --------------------------------------------------------------------------------

function start(values) {
  if (about) return ask();
  about = values;
  byId("about").textContent = `${values.name}: ${values.classes ? "accuracy" : "R²"} ${shortNumber(values.score)} on left-out rows. Change a value and see the prediction.`;
  byId("target").textContent = `Prediction of ${values.target}`;
  byId("from-row").hidden = !values.rows;
  byId("row").max = values.rows;
  if (values.classes) {
    byId("class-row").hidden = false;
    byId("class").replaceChildren(...values.classes.map((name, k) => element("option", { value: k }, name)));
  }
  for (const column of values.columns) state.cells[column.name] = column.value;
  state.moved = values.columns.find((column) => "low" in column || "labels" in column)?.name ?? null;
  state.class = null;
  restore();
  byId("columns").replaceChildren(...values.columns.filter((column) => !column.kind.startsWith("empty")).map(control));
  update();
  return ask();
}

function restore() {
  const found = fromFragment(location.hash.slice(1));
  if (!found || found.v !== 1 || typeof found.cells !== "object") return;
  for (const name of Object.keys(state.cells)) if (typeof found.cells[name] === "string") state.cells[name] = found.cells[name];
  if (Number.isFinite(found.coverage)) state.coverage = found.coverage;
  if (found.moved in state.cells) state.moved = found.moved;
  if (about.classes && found.class >= 0 && found.class < about.classes.length) state.class = found.class;
}

function control(column, k) {
  const id = `column-${k}`, row = element("div", { class: "row" }, element("label", { for: id }, column.name));
  const inputs = [];
  if (column.labels) {
    const options = column.labels.map((label) => element("option", { value: label }, label));
    inputs.push(element("select", { id }, ...options, element("option", { value: "" }, "(gap)")));
  } else if ("low" in column) {
    inputs.push(element("input", { id, type: "range", min: column.low, max: column.high, step: column.step }));
    inputs.push(element("input", { type: "number", step: "any", "aria-label": `${column.name}, number` }));
  } else inputs.push(element("input", { id, type: "text" }));
  for (const input of inputs) {
    input.dataset.column = column.name;
    input.addEventListener("input", () => {
      state.cells[column.name] = input.value;
      state.moved = column.labels || "low" in column ? column.name : state.moved;
      without = null;
      update(input);
      ask();
    });
    input.addEventListener("focus", () => {
      if (state.moved === column.name || !(column.labels || "low" in column)) return;
      state.moved = column.name;
      ask();
    });
  }
  row.append(...inputs);
  return row;
}

function update(except = null) {
  for (const input of document.querySelectorAll("[data-column]")) if (input !== except) input.value = state.cells[input.dataset.column];
  byId("coverage").value = state.coverage;
  byId("coverage-out").textContent = `${state.coverage} %`;
  if (state.class !== null) byId("class").value = state.class;
}

function setCells(cells) {
  state.cells = { ...state.cells, ...cells };
  without = null;
  update();
  ask();
}

byId("columns").addEventListener("submit", (event) => event.preventDefault());
byId("row").addEventListener("change", () => connection.send("cells", { row: Number(byId("row").value) }));
byId("coverage").addEventListener("input", () => { state.coverage = Number(byId("coverage").value); update(); ask(); });
byId("class").addEventListener("change", () => { state.class = Number(byId("class").value); ask(); });
byId("share").addEventListener("click", () => copy(location.href, "The address is copied."));

// ---- Answers ---------------------------------------------------------------------------------

function showPrediction(values) {
  answered = values;
  if (about.classes && state.class === null) {  // explain the class that is predicted first
    state.class = values.probabilities.indexOf(Math.max(...values.probabilities));
    update();
    ask();
    return;
  }
  const said = typeof values.prediction === "number" ? shortNumber(values.prediction, 4) : String(values.prediction);
  byId("prediction").textContent = said;
  byId("range").textContent = values.interval
    ? `from ${shortNumber(values.interval[0], 4)} to ${shortNumber(values.interval[1], 4)} with probability ${state.coverage} %`
    : `in {${values.set.join(", ")}} with probability ${state.coverage} %`;
  byId("probabilities").replaceChildren(...(values.probabilities ?? []).flatMap((p, k) => [
    element("span", {}, about.classes[k]),
    element("meter", { min: 0, max: 1, value: p, "aria-label": `probability of ${about.classes[k]}` }),
    element("span", {}, `${(100 * p).toFixed(1)} %`)]));
  if (values.curve) drawCurve(values.curve);
  document.body.dataset.pictures = String(Number(document.body.dataset.pictures ?? 0) + 1);
  say();
}

const say = settled(700, () => {
  byId("live").textContent = `${about.target}: ${byId("prediction").textContent}, ${byId("range").textContent}.`;
});

function drawCurve(curve) {
  const width = 560, height = 240, left = 52, bottom = 26, top = 12;
  const svg = byId("curve"), numbers = curve.values.map(Number), labels = numbers.some(Number.isNaN);
  byId("curve-title").textContent = `${about.classes ? `Probability of ${about.classes[state.class]}` : about.target} over ${curve.column}`;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const all = [...curve.own, ...(curve.mean ?? [])];
  let low = Math.min(...all), high = Math.max(...all);
  if (about.classes) [low, high] = [0, 1];
  if (high - low < 1e-12) [low, high] = [low - 1, high + 1];
  const last = numbers.length - 1, now = state.cells[curve.column];
  const share = (k) => (labels ? (k + 0.5) / (last + 1) : last ? k / last : 0.5);
  const x = (s) => left + s * (width - left - 12);
  const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  const parts = [];
  for (const value of [low, (low + high) / 2, high]) {
    parts.push(element("line", { class: "axis", x1: left, x2: width - 12, y1: y(value), y2: y(value) }));
    parts.push(element("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, shortNumber(value)));
  }
  if (labels) curve.values.forEach((label, k) => {
    if (last < 12 || label === now) parts.push(element("text", { x: x(share(k)), y: height - 6, "text-anchor": "middle" }, label.slice(0, 12)));
  });
  else for (const k of [0, last]) parts.push(element("text", { x: x(share(k)), y: height - 6, "text-anchor": k ? "end" : "start" }, shortNumber(numbers[k], 4)));
  const here = labels ? share(curve.values.indexOf(now)) : (Number(now) - numbers[0]) / (numbers[last] - numbers[0] || 1);
  if (now !== "" && here >= 0 && here <= 1) parts.push(element("line", { class: "mark", x1: x(here), x2: x(here), y1: top, y2: height - bottom }));
  for (const [values, hue, style] of [[curve.mean, "--c1", "curve dotted"], [curve.own, "--c0", "curve"]]) {
    if (!values) continue;
    if (labels) for (let k = 0; k <= last; k++) {
      const dot = element("circle", { cx: x(share(k)), cy: y(values[k]), r: hue === "--c0" ? 5 : 3.5 });
      dot.style.fill = `var(${hue})`;
      parts.push(dot);
    } else {
      const path = element("path", { class: style, d: `M${values.map((value, k) => `${x(share(k)).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}` });
      path.style.stroke = `var(${hue})`;
      parts.push(path);
    }
  }
  svg.replaceChildren(...parts);
}

function showInfluence(values) {
  if (about.classes && state.class === null) return;
  influence = values;
  const what = about.classes ? `score of ${about.classes[state.class]}` : "prediction";
  byId("influential").tBodies[0].replaceChildren(...values.influential.map((each) => {
    const button = element("button", { type: "button", "aria-pressed": String(each.row === without), "aria-label": `Remove row ${each.row}` }, "without");
    button.addEventListener("click", () => {
      without = without === each.row ? null : each.row;
      showInfluence(influence);
      document.querySelector(`[aria-label="Remove row ${each.row}"]`).focus();
    });
    const line = element("tr", {}, element("td", {}, String(each.row)),
      element("td", { class: "number" }, `${each.change > 0 ? "+" : ""}${shortNumber(each.change)}`),
      element("td", { class: "number" }, shortNumber(each.similarity, 2)), element("td", {}, each.target ?? "–"),
      element("td", {}, button), element("td", {}, each.cells || "–"));
    if (each.row === without) line.className = "without";
    return line;
  }));
  const removed = values.influential.find((each) => each.row === without);
  byId("without").textContent = removed
    ? `Without row ${removed.row}, the ${what} is ${shortNumber(removed.without, 4)} instead of ${shortNumber(values.now, 4)}. Nothing was fitted again.`
    : `The ${what} is ${shortNumber(values.now, 4)}. Choose a row to see it without that row.`;
  byId("exact").textContent = values.exact
    ? "Changes are exact: those of fits without the row, with the same views, scales and ridges."
    : "Some networks have an input metric that the targets shaped: changes leave out the change of that metric.";
}

addEventListener("hashchange", () => {
  if (!about) return;
  restore();
  update();
  ask();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => answered?.curve && drawCurve(answered.curve));
connection.onOpen = () => connection.send("start", {});
