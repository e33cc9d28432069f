/** Formats JSON for reviewers: a value that fits on a line stays on one. */
import type { Json } from "../../lib/json/mod.ts";

const WIDTH = 160;

/** Formats a value, with a line break at the end; numbers kept as text keep their spelling. */
export function formatJson(value: Json): string {
  return `${format(value, "", 0)}\n`;
}

function format(value: Json, indent: string, before: number): string {
  const flat = JSON.stringify(value);
  if (indent.length + before + flat.length <= WIDTH || typeof value !== "object" || value === null) return flat;
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 1) return `[${format(value[0] ?? null, indent, before + 1)}]`;
    return `[\n${value.map((item) => deeper + format(item, deeper, 1)).join(",\n")}\n${indent}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  // A raw number is an object to JavaScript, but never longer than a line.
  if (members.length === 0) return flat;
  if (members.length === 1) {
    const [[name, member] = ["", null]] = members;
    const key = `{${JSON.stringify(name)}: `;
    return `${key}${format(member ?? null, indent, before + key.length)}}`;
  }
  const lines = members.map(([name, member]) => {
    const key = `${JSON.stringify(name)}: `;
    return deeper + key + format(member ?? null, deeper, key.length + 1);
  });
  return `{\n${lines.join(",\n")}\n${indent}}`;
}
