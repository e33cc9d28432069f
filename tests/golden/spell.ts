/** JSON for reviewers: what fits on a line stays on one. */
import type { Json } from "../../lib/json/json.ts";

const WIDTH = 118;

/** Writes a value; numbers that are kept as text stay as they were. Ends in a line break. */
export function spellJson(value: Json): string {
  return `${spell(value, "", 0)}\n`;
}

function spell(value: Json, indent: string, before: number): string {
  const flat = JSON.stringify(value);
  if (indent.length + before + flat.length <= WIDTH || typeof value !== "object" || value === null) return flat;
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => deeper + spell(item, deeper, 1)).join(",\n")}\n${indent}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  // A raw number is an object to the language, but never longer than a line.
  if (members.length === 0) return flat;
  const lines = members.map(([name, member]) => {
    const key = `${JSON.stringify(name)}: `;
    return deeper + key + spell(member ?? null, deeper, key.length + 1);
  });
  return `{\n${lines.join(",\n")}\n${indent}}`;
}
