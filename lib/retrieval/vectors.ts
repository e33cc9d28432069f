/** Checks and converts vectors as JSON text: arrays of numbers, or base64 of little-endian 32-bit floats. */
import { Buffer } from "node:buffer";
import { GatewayError } from "../errors.ts";

const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?`;
// JSON allows less white space than "\s".
const SPACE = String.raw`[ \t\r\n]*`;
const ARRAY = new RegExp(String.raw`^\[${SPACE}${NUMBER}(?:${SPACE},${SPACE}${NUMBER})*${SPACE}\]$`);
const BASE64 = /^"(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"$/;

/** Returns whether a text is a vector in one of the two forms. */
export function isVector(text: string): boolean {
  return (text.startsWith('"') ? BASE64 : ARRAY).test(text);
}

/** Returns the number of dimensions of a vector. */
export function dimensionsOf(vector: string): number {
  if (!vector.startsWith('"')) {
    let count = 1;
    for (let at = vector.indexOf(","); at >= 0; at = vector.indexOf(",", at + 1)) count++;
    return count;
  }
  const padding = Number(vector.endsWith('="')) + Number(vector.endsWith('=="'));
  return ((vector.length - 2) * 3 / 4 - padding) / Float32Array.BYTES_PER_ELEMENT;
}

/**
 * Returns a vector in the requested format. A vector that already has it is not changed.
 * @throws {GatewayError} `upstream` for base64 of values that are not numbers
 */
export function inFormat(vector: string, base64: boolean): string {
  if (vector.startsWith('"') === base64) return vector;
  return base64 ? toBase64(JSON.parse(vector)) : toArray(vector.slice(1, -1));
}

/** Encodes numbers as a JSON string of base64. */
export function toBase64(numbers: ArrayLike<number>): string {
  const bytes = Buffer.alloc(numbers.length * 4);
  for (let index = 0; index < numbers.length; index++) bytes.writeFloatLE(numbers[index] ?? 0, index * 4);
  return `"${bytes.toString("base64")}"`;
}

function toArray(base64: string): string {
  const bytes = Buffer.from(base64, "base64");
  const numbers = Array.from({ length: bytes.length >> 2 }, (_, index) => bytes.readFloatLE(index * 4));
  if (!numbers.every(Number.isFinite)) {
    throw new GatewayError("upstream", "Cannot read the upstream's answer: a vector has a value that is not a number");
  }
  return JSON.stringify(numbers);
}
