/** Writes `NOTICE`: the licences of all third-party code in an executable. `deno task notice` */
import { type Part, readParts } from "./sbom_parts.ts";
import { type BundledCode, LEFT_OUT, RUNTIME } from "./sbom_rules.ts";
import { MISSING, TEXTS } from "./notice_texts.ts";

/** Path of the written file, from the root of the repository. */
const NOTICE_FILE = "NOTICE";

/** Line between two sections. */
const SEPARATOR = "-".repeat(80);

/** Returns the text of the file. @throws {Error} for a package without the text of its licence */
export function noticeOf(parts: readonly Part[]): string {
  const pieces = [
    ...parts.flatMap(({ name, pieces }) => pieces.map((piece) => ({ ...piece, where: `${name}: ${piece.where}` }))),
    ...RUNTIME,
  ];
  const sections = [
    HEAD,
    ...parts.map(sectionOf),
    ...Object.keys(TEXTS).map((id) => piecesUnder(id, pieces)),
    piecesUnderOthers(pieces),
  ];
  return `${sections.map((section) => section.trimEnd()).join(`\n\n${SEPARATOR}\n\n`)}\n`;
}

const HEAD = `Sluice is under the MIT license; see LICENSE.

An executable carries the packages below, each under the licence that follows it, and the runtime of Deno.
tools/notice.ts writes this file from the lock file and the packages; build/sluice.cdx.json is the list for machines.

These parts of the packages are in no executable:

${LEFT_OUT.map(({ package: name, path, why }) => `  ${name}/${path}: ${why}`).join("\n")}`;

/** Returns the section of a package. */
function sectionOf({ name, version, license, declared, homepage, texts }: Part): string {
  // If a package offers a choice of licences, its file LICENSE only names their files.
  const licenseTexts = declared === license ? texts : texts.filter(({ file }) => file !== "LICENSE");
  const text = licenseTexts.length > 0 ? licenseTexts.map(({ text }) => tidy(text)).join("\n\n") : MISSING[name];
  if (text === undefined) throw new Error(`Cannot write the notice of ${name}@${version}: it ships no licence`);
  const choice = declared === license ? license : `${license}, chosen from ${declared}`;
  return `${name} ${version}\n${homepage}\n${choice}\n\n${text}`;
}

/** Removes trailing white space, and empty lines at the beginning and the end. */
function tidy(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(/[ \t]+$/gm, "").replace(/^\n+|\n+$/g, "");
}

/** Returns the section of a licence: all pieces that are under it, and its text once. */
function piecesUnder(id: string, pieces: readonly Omit<BundledCode, "inside">[]): string {
  const list = pieces.filter(({ license }) => license === id).map(rowOf);
  return `Parts of the packages and of the runtime under ${id}\n\n${list.join("\n")}\n\n${TEXTS[id]}`;
}

/** Returns the section of the pieces whose licence has no section of its own. */
function piecesUnderOthers(pieces: readonly Omit<BundledCode, "inside">[]): string {
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
