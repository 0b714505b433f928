/** What JSON can hold: strictly for arguments, which a policy decides on, and leniently for results, which are only compared. */

import { shape } from "./wire.js";

/** How deep arguments and results may be nested. The gate refuses more. */
const DEPTH_MAX = 100;

const SURROGATE = /\\u[dD][89a-fA-F]/u;

/** Results with a longer JSON text or text are cut; in UTF-16 units. */
export const RESULT_UNITS_MAX = 262_144;

/** What is kept of the beginning of a result that is cut; in UTF-16 units. */
const RESULT_HEAD_UNITS = 16_384;

/** Says which part of an event JSON cannot hold, and what to send instead. */
export class NotJson extends TypeError {
  override name = "NotJson";
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

/**
 * Returns a copy of a value that JSON holds as it is. A member that is undefined is left out and a Date is its ISO text, as in
 * `JSON.stringify`.
 *
 * @throws {NotJson} for everything that `JSON.stringify` would change in silence, such as bytes, a Set, NaN or half a surrogate pair: the
 * tool would see other arguments than the gate. The message names the path and the shape, never the value.
 */
export function strict(value: unknown, path: string, depth = 0): unknown {
  if (depth > DEPTH_MAX) throw new NotJson(`${path} is nested deeper than ${DEPTH_MAX}, or holds itself; send a flatter value`);
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw new NotJson(`${path} is a string with half a surrogate pair; send well-formed text`);
      return value;
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw new NotJson(`${path} is a number that JSON cannot hold; send null or a finite number`);
      return value;
    case "object":
      break;
    default:
      throw new NotJson(`${path} is ${shape(value)}, which JSON cannot hold; send a string, a number, a list or an object`);
  }
  if (value === null) return null;
  if (Array.isArray(value)) return value.map((item: unknown, index) => strict(item, `${path}[${index}]`, depth + 1));
  if (value instanceof Date) return strict(Number.isNaN(value.getTime()) ? NaN : value.toISOString(), path, depth);
  if (!isPlain(value)) throw new NotJson(`${path} is ${shape(value)}, which JSON cannot hold; send a string, a list or a plain object`);
  // `fromEntries` defines own members: an argument named `__proto__` stays an argument.
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  // A member's name may be a secret as well as its value.
  return Object.fromEntries(members.map(([name, member]) => [strict(name, `a name in ${path}`), strict(member, `${path}.*`, depth + 1)]));
}

/**
 * Checks that a JSON text has no escape of half a surrogate pair: tools would read different characters in its place.
 *
 * @throws {NotJson} with the path of the first such escape.
 */
export function checkEscapes(json: unknown): void {
  if (typeof json !== "string" || !SURROGATE.test(json)) return;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // The gate says what a text is worth that is no JSON.
    return;
  }
  strict(value, "arguments");
}

/** Returns what JSON can hold of any value: bytes and collections as lists, what has no such form as a text that says so. Never throws. */
export function lenient(value: unknown, depth = 0): unknown {
  if (depth > DEPTH_MAX) return "[nested too deep]";
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "bigint":
      return value.toString();
    case "boolean":
      return value;
    case "object":
      break;
    default:
      return value === undefined ? null : `[${typeof value}]`;
  }
  if (value === null) return null;
  try {
    if (ArrayBuffer.isView(value)) return Array.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (value instanceof Error) return { error: lenient(value.message, depth + 1) };
    if (value instanceof Map || value instanceof Set) return Array.from(value as Iterable<unknown>, (item) => lenient(item, depth + 1));
    if (Array.isArray(value)) return value.map((item) => lenient(item, depth + 1));
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === "function") return lenient(toJSON.call(value), depth + 1);
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name.toWellFormed(), lenient(member, depth + 1)]));
  } catch {
    return "[unreadable]";
  }
}

/** Returns the SHA-256 of a text in lower-case hex. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Returns a tool's result as it is sent: a text, null or a JSON value. Of a longer result than `RESULT_UNITS_MAX` the beginning, the length
 * and the SHA-256 are sent, so that equal results stay equal and others stay different.
 */
export async function resultOf(value: unknown): Promise<unknown> {
  const held = lenient(value);
  const text = typeof held === "string" ? held : JSON.stringify(held);
  if (text.length <= RESULT_UNITS_MAX) return held;
  const head = text.slice(0, RESULT_HEAD_UNITS).toWellFormed();
  return `${head}\n[cut by the client: ${text.length} UTF-16 units, sha256:${await sha256(text)}]`;
}
