/** Writes `NOTICE`: the licences of everything that an executable carries. `deno task notice` */
import { type Part, readParts } from "./sbom_parts.ts";
import { type BundledCode, LEFT_OUT, RUNTIME } from "./sbom_rules.ts";
import { MISSING, TEXTS } from "./notice_texts.ts";

/** Path of the written file, from the root of the repository. */
const NOTICE_FILE = "NOTICE";

const LINE = "-".repeat(80);

/** The text of the file. @throws {Error} for a package without the text of its licence */
export function noticeOf(parts: readonly Part[]): string {
  const pieces = [
    ...parts.flatMap(({ name, pieces }) => pieces.map((piece) => ({ ...piece, where: `${name}: ${piece.where}` }))),
    ...RUNTIME,
  ];
  const sections = [
    HEAD,
    ...parts.map(sectionOf),
    ...Object.keys(TEXTS).map((id) => piecesUnder(id, pieces)),
    others(pieces),
  ];
  return `${sections.map((section) => section.trimEnd()).join(`\n\n${LINE}\n\n`)}\n`;
}

const HEAD = `Sluice is under the MIT license; see LICENSE.

An executable carries the packages below, each under the licence that follows it, and the runtime of Deno.
tools/notice.ts writes this file from the lock file and the packages; build/sluice.cdx.json is the list for machines.

These parts of the packages are in no executable:

${LEFT_OUT.map(({ package: name, path, why }) => `  ${name}/${path}: ${why}`).join("\n")}`;

function sectionOf({ name, version, license, declared, homepage, texts }: Part): string {
  // If a package leaves a choice, its LICENSE only names the files of the choices.
  const all = declared === license ? texts : texts.filter(({ file }) => file !== "LICENSE");
  const text = all.length > 0 ? all.map(({ text }) => tidy(text)).join("\n\n") : MISSING[name];
  if (text === undefined) throw new Error(`Cannot write the notice of ${name}@${version}: it ships no licence`);
  const choice = declared === license ? license : `${license}, chosen from ${declared}`;
  return `${name} ${version}\n${homepage}\n${choice}\n\n${text}`;
}

function tidy(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(/[ \t]+$/gm, "").replace(/^\n+|\n+$/g, "");
}

/** All pieces under one licence, and its text once. */
function piecesUnder(id: string, pieces: readonly Omit<BundledCode, "inside">[]): string {
  const list = pieces.filter(({ license }) => license === id).map(rowOf);
  return `Parts of the packages and of the runtime under ${id}\n\n${list.join("\n")}\n\n${TEXTS[id]}`;
}

function others(pieces: readonly Omit<BundledCode, "inside">[]): string {
  const list = pieces.filter(({ license }) => !(license in TEXTS)).map((piece) =>
    `${rowOf(piece)}\n    ${piece.license}`
  );
  return `Other parts; the text of Apache-2.0 is above, with @jsquash/jpeg\n\n${list.join("\n")}\n\n` +
    "The runtime of Deno is itself made of many libraries, with licences of their own: see its repository.";
}

function rowOf({ name, where, copyright }: Omit<BundledCode, "inside">): string {
  return `  ${name} (${where})\n    ${copyright}`;
}

if (import.meta.main) {
  const parts = await readParts({ lock: await Deno.readTextFile("deno.lock"), cache: Deno.args[0] ?? "" });
  await Deno.writeTextFile(NOTICE_FILE, noticeOf(parts));
}
