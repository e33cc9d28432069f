/** Finds the texts of the errors that clients get, in the sources. */
import { VENDOR_ERRORS } from "../../lib/protocols/canonical/vendor_errors.ts";
import { blankComments, readSources, type SourceFile } from "../sources.ts";

/** A text of an error, with … for what differs from request to request. */
export interface ErrorText {
  /** Kind of the error; `various` where the code computes it. */
  kind: string;
  text: string;
}

/** Texts that a scan found. */
export interface ErrorTexts {
  texts: ErrorText[];
  /** Files that make errors whose texts the scan cannot find, with the number of these places. */
  unknown: Record<string, number>;
}

/** A string or template, or several that are joined by +. */
const LITERAL = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\`(?:[^\`\\]|\\.)*\`)`;
const LITERALS = `(${LITERAL}(?:\\s*\\+\\s*${LITERAL})*)`;
const SITE = new RegExp(String.raw`new GatewayError\(\s*([^,]+?),\s*(?:${LITERALS}|([A-Za-z_]+)(?=[,)]))?`, "g");

/** Ways to write a text that the operator gets: mistakes of the configuration, failures of commands, wrong command lines. */
const OPERATOR_TEXTS = {
  configuration: new RegExp(
    String
      .raw`(?:problems\.push\(|\berror: |new ConfigError\(\[\s*|formatProblem\(\s*\[[^\]]*\],\s*|\breturn \[\s*)${LITERALS}`,
    "g",
  ),
  commands: new RegExp(String.raw`new (?:StoreError|ListenError)\(\s*${LITERALS}`, "g"),
  usage: new RegExp(String.raw`new UsageError\(\s*${LITERALS}`, "g"),
};

/** A group of texts that the operator gets. */
export type OperatorTexts = keyof typeof OPERATOR_TEXTS;

/** Texts that the operator gets from the program, sorted. */
export async function readOperatorTexts(kind: OperatorTexts): Promise<string[]> {
  const isConfig = (path: string) => /^lib\/(?:config[./]|catalog\/(?:model|price_schema)\.ts)/.test(path);
  const sources = (await readSources("lib")).filter(({ path }) => kind !== "configuration" || isConfig(path));
  const texts = sources.flatMap(({ text }) =>
    [...blankComments(text).matchAll(OPERATOR_TEXTS[kind])].map(([, literal = ""]) => plain(literal))
  );
  return [...new Set(texts.filter((text) => /[A-Za-z]{2,} [A-Za-z]{2,}/.test(text)))].sort();
}

/** Scans the product. */
export async function readErrorTexts(): Promise<ErrorTexts> {
  const sources = await readSources("lib");
  const isApart = ({ path }: SourceFile) => /^lib\/(?:conform|doctor)/.test(path);
  return findErrorTexts(sources.filter((file) => !isApart(file)));
}

/** Finds the texts in these files. */
export function findErrorTexts(files: readonly SourceFile[]): ErrorTexts {
  const sources = files.map(({ path, text }) => ({ path, text: blankComments(text) }));
  const allText = sources.map(({ text }) => text).join("\n");
  const texts: ErrorText[] = [];
  const unknown: Record<string, number> = {};
  for (const { path, text } of sources) {
    for (const { 1: kindText = "", 2: literal, 3: name, index } of text.matchAll(SITE)) {
      // A copy of an error has its text.
      if (kindText === "kind" && name === "message") continue;
      const kind = /^"(\w+)"$/.exec(kindText)?.[1] ?? "various";
      const found = literal !== undefined
        ? [literal]
        : name === undefined
        ? []
        : /^[A-Z_]+$/.test(name)
        ? constantsOf(allText, name)
        : localsOf(text.slice(0, index), name) ?? argumentsOf(text, index);
      if (found.length === 0) unknown[path] = (unknown[path] ?? 0) + 1;
      for (const each of found) texts.push({ kind, text: plain(each) });
    }
  }
  for (const [kind, text] of Object.entries(VENDOR_ERRORS)) texts.push({ kind, text });
  const unique = new Map(texts.map((each) => [`${each.kind} ${each.text}`, each]));
  return { texts: [...unique.values()].sort((one, other) => one.text < other.text ? -1 : 1), unknown };
}

/** The value of a constant. */
function constantsOf(text: string, name: string): string[] {
  const pattern = new RegExp(String.raw`const ${name}(?:: string)? =\s*${LITERALS}`, "g");
  return [...text.matchAll(pattern)].map(([, literal = ""]) => literal);
}

/** The value of a local constant of the same function; `undefined` if there is none. */
function localsOf(before: string, name: string): string[] | undefined {
  const body = before.slice(before.lastIndexOf("\nfunction ") + 1);
  const found = constantsOf(body.slice(body.lastIndexOf("\nexport ") + 1), name).slice(-1);
  return found.length === 0 ? undefined : found;
}

/** The texts that the function around a place is called with. */
function argumentsOf(text: string, index: number): string[] {
  const [, name] = [...text.slice(0, index).matchAll(/(?:function |^ {2}#?)([A-Za-z]+)\(/gm)].at(-1) ?? [];
  if (name === undefined) return [];
  const pattern = new RegExp(String.raw`(?<!function )\b${name}\((?:[^"'\`();{}]*,)?\s*${LITERALS}`, "g");
  return [...text.matchAll(pattern)].map(([, literal = ""]) => literal);
}

/** The text of literals, with … in place of what is put in. */
function plain(literals: string): string {
  const pieces = literals.match(new RegExp(LITERAL, "g")) ?? [];
  return pieces.map((piece) => withoutPlaces(piece.slice(1, -1))).join("").replaceAll(/\\(.)/g, "$1")
    .replaceAll(/\s+/g, " ");
}

/** Replaces `${…}`, also where one is in another. */
function withoutPlaces(text: string): string {
  let out = "";
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (depth === 0 && text.startsWith("${", at)) {
      out += "…";
      depth = 1;
      at++;
    } else if (depth === 0) out += text[at];
    else if (text[at] === "{") depth++;
    else if (text[at] === "}") depth--;
  }
  return out;
}
