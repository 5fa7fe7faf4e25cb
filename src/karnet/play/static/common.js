// The socket and small helpers that both pages share.

export const byId = (id) => document.getElementById(id);

// Return the values and the arrays of an answer: JSON, or JSON followed by 32-bit floats.
function unpacked(data) {
  if (typeof data === "string") return [JSON.parse(data), {}];
  const length = new DataView(data).getUint32(0, true);
  const values = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length)));
  const arrays = {};
  let start = 4 + length;
  for (const [name, shape] of Object.entries(values.arrays)) {
    const size = shape.reduce((a, b) => a * b, 1);
    arrays[name] = { shape, values: new Float32Array(data, start, size) };
    start += 4 * size;
  }
  return [values, arrays];
}

// A connection that sends only the newest message of each kind, with at most two on their way.
export class Connection {
  constructor(onAnswer) {
    this.onAnswer = onAnswer;
    this.onOpen = () => {};
    this.sent = 0;
    this.answered = 0;
    this.waiting = new Map();
    this.attempts = 0;
    this.open();
  }

  open() {
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    address.hash = "";
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.attempts = 0;
      this.answered = this.sent;
      byId("lost").hidden = true;
      this.onOpen();
      this.flush();
    };
    this.socket.onmessage = (event) => {
      const [values, arrays] = unpacked(event.data);
      if (Number.isInteger(values.id)) this.answered = Math.max(this.answered, values.id);
      this.onAnswer(values, arrays);
      this.flush();
    };
    this.socket.onclose = () => {
      byId("lost").textContent = "The server does not answer: start karnet play again. What you drew is in the address of this page.";
      byId("lost").hidden = false;
      this.attempts += 1;
      if (this.attempts < 20) setTimeout(() => this.open(), 500 * this.attempts);
    };
  }

  send(kind, message) {
    this.waiting.set(kind, message);
    this.flush();
  }

  get busy() {
    return this.sent > this.answered || this.waiting.size > 0;
  }

  flush() {
    if (this.socket.readyState !== WebSocket.OPEN) return;
    for (const [kind, message] of this.waiting) {
      if (this.sent - this.answered >= 2) return;
      this.waiting.delete(kind);
      this.sent += 1;
      const content = typeof message === "function" ? message() : message;
      this.socket.send(JSON.stringify({ ...content, kind, id: this.sent }));
    }
  }
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function rgb(text) {
  return [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16));
}

export function element(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "circle", "g", "rect"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function shortNumber(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size < 1e-3 || size >= 1e5 ? value.toExponential(1) : String(Number(value.toPrecision(digits)));
}

// Text in the fragment of the address, with characters that need no escape.
export function toFragment(object) {
  const bytes = new TextEncoder().encode(JSON.stringify(object));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromFragment(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    const found = JSON.parse(new TextDecoder().decode(bytes));
    return found && typeof found === "object" ? found : null;
  } catch {
    return null;
  }
}

export async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    byId("copied").textContent = said;
  } catch {
    byId("copied").textContent = "The browser does not allow copying: select the text.";
  }
}

// Run a function once some time after the last of many calls.
export function settled(milliseconds, run) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, milliseconds);
  };
}
