/** Uploads, sound and broken. */
import type { Random } from "../support/random.ts";
import { changeBytes, joined, latin1 } from "./bytes.ts";

/** One part of a form. */
export interface Part {
  /** Its head, without the empty line. */
  head: string;
  bytes: Uint8Array;
}

const BOUNDARY = "fuzz-boundary-7";
const ODD_HEADS = [
  "",
  "content-disposition: form-data",
  'content-disposition: form-data; name=""',
  'content-disposition: form-data; name="image[]"; filename="../../etc/passwd"',
  'content-disposition: form-data; name="__proto__"',
  'content-disposition: form-data; name="prompt"; name="model"',
  'content-disposition: attachment; name="prompt"',
  'content-disposition: form-data; name="prompt"\r\ncontent-transfer-encoding: base64',
  'content-disposition: form-data; name="prompt"\r\ncontent-type: text/plain; charset=utf-16',
  'content-disposition: form-data; name="image"; filename="a.png"\r\ncontent-type: multipart/mixed; boundary=b',
  `content-disposition: form-data; name="${"x".repeat(5_000)}"`,
  'content-disposition: form-data; name="n\u0000"',
  "content-disposition: form-data; name*=utf-8''prompt",
];
const ODD_TYPES = [
  "multipart/form-data",
  "multipart/form-data; boundary=",
  `multipart/form-data; boundary="${BOUNDARY}"`,
  `multipart/form-data; boundary=${"b".repeat(71)}`,
  "multipart/form-data; boundary=other",
  `multipart/mixed; boundary=${BOUNDARY}`,
  `multipart/form-data; boundary=${BOUNDARY}; boundary=b`,
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=\u00e9",
];

/** A field of text. */
export function field(name: string, value: string): Part {
  return { head: `content-disposition: form-data; name="${name}"`, bytes: new TextEncoder().encode(value) };
}

/** A file. */
export function file(name: string, bytes: Uint8Array, type = "image/png"): Part {
  return { head: `content-disposition: form-data; name="${name}"; filename="a.png"\r\ncontent-type: ${type}`, bytes };
}

/** A form with mutations, and its content type. */
export function changedForm(sound: readonly Part[], random: Random): { type: string; body: Uint8Array } {
  let parts = [...sound];
  for (let times = random.below(3); times > 0; times--) parts = changeParts(parts, random);
  const written = parts.flatMap(({ head, bytes }) => [
    latin1(`--${BOUNDARY}\r\n${head}\r\n\r\n`),
    bytes,
    latin1("\r\n"),
  ]);
  const body = joined(...written, ...(random.chance(0.95) ? [latin1(`--${BOUNDARY}--\r\n`)] : []));
  return {
    type: random.chance(0.1) ? random.pick(ODD_TYPES) : `multipart/form-data; boundary=${BOUNDARY}`,
    body: random.chance(0.15) ? changeBytes(body, random) : body,
  };
}

function changeParts(parts: readonly Part[], random: Random): Part[] {
  const at = random.below(parts.length);
  const part = parts[at];
  if (part === undefined) return [field("prompt", "a")];
  const change = random.next();
  if (change < 0.2) return parts.toSpliced(at, 1);
  if (change < 0.35) return [...parts, part];
  if (change < 0.4) return Array.from({ length: 60 }, () => part);
  if (change < 0.6) return parts.with(at, { ...part, head: random.pick(ODD_HEADS) });
  if (change < 0.7) return parts.with(at, { ...part, bytes: new Uint8Array(random.below(100_000)) });
  return parts.with(at, { ...part, bytes: changeBytes(part.bytes, random) });
}
