/** Finds the texts of errors in the sources: those that clients get, and those that the operator gets. */
import { VENDOR_ERRORS } from "../../lib/protocols/canonical/vendor_errors.ts";
import { blankComments, readSources, type SourceFile } from "../sources.ts";

/** The text of an error, with … in place of the parts that vary. */
export interface ErrorText {
  /** Kind of the error; `various` where the code computes it. */
  kind: string;
  text: string;
}

/** The result of a scan. */
export interface ErrorTexts {
  texts: ErrorText[];
  /** Number of errors whose texts the scan could not find, by file. */
  unknown: Record<string, number>;
}

/** Pattern of a string or a template, and of several that are joined by `+`. */
const LITERAL = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\`(?:[^\`\\]|\\.)*\`)`;
const LITERALS = `(${LITERAL}(?:\\s*\\+\\s*${LITERAL})*)`;
/** A place that makes an error: its kind, and its text or the name of a variable with the text. */
const SITE = new RegExp(String.raw`new GatewayError\(\s*([^,]+?),\s*(?:${LITERALS}|([A-Za-z_]+)(?=[,)]))?`, "g");

/**
 * Code that makes a text for the operator: mistakes of the configuration, failures of commands, wrong command lines.
 */
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

/** Returns the texts of one group that the operator gets from the program, sorted. */
export async function readOperatorTexts(kind: OperatorTexts): Promise<string[]> {
  const isConfig = (path: string) => /^lib\/(?:config[./]|catalog\/(?:model|price_schema)\.ts)/.test(path);
  const sources = (await readSources("lib")).filter(({ path }) => kind !== "configuration" || isConfig(path));
  const texts = sources.flatMap(({ text }) =>
    [...blankComments(text).matchAll(OPERATOR_TEXTS[kind])].map(([, literal = ""]) => plain(literal))
  );
  return [...new Set(texts.filter((text) => /[A-Za-z]{2,} [A-Za-z]{2,}/.test(text)))].sort();
}

/** Scans the gateway for the texts that clients get. */
export async function readErrorTexts(): Promise<ErrorTexts> {
  const sources = await readSources("lib");
  const isOtherProgram = ({ path }: SourceFile) => /^lib\/(?:conform|doctor)/.test(path);
  return findErrorTexts(sources.filter((file) => !isOtherProgram(file)));
}

/** Finds the texts that clients get in files. */
export function findErrorTexts(files: readonly SourceFile[]): ErrorTexts {
  const sources = files.map(({ path, text }) => ({ path, text: blankComments(text) }));
  const allText = sources.map(({ text }) => text).join("\n");
  const texts: ErrorText[] = [];
  const unknown: Record<string, number> = {};
  for (const { path, text } of sources) {
    for (const { 1: kindText = "", 2: literal, 3: name, index } of text.matchAll(SITE)) {
      // A copy of an error has the text of the original.
      if (kindText === "kind" && name === "message") continue;
      const kind = /^"(\w+)"$/.exec(kindText)?.[1] ?? "various";
      let literals: readonly string[] = [];
      if (literal !== undefined) literals = [literal];
      else if (name !== undefined && /^[A-Z_]+$/.test(name)) literals = constantsOf(allText, name);
      else if (name !== undefined) literals = localsOf(text.slice(0, index), name) ?? argumentsOf(text, index);
      if (literals.length === 0) unknown[path] = (unknown[path] ?? 0) + 1;
      for (const each of literals) texts.push({ kind, text: plain(each) });
    }
  }
  for (const [kind, text] of Object.entries(VENDOR_ERRORS)) texts.push({ kind, text });
  const unique = new Map(texts.map((each) => [`${each.kind} ${each.text}`, each]));
  return { texts: [...unique.values()].sort((one, other) => one.text < other.text ? -1 : 1), unknown };
}

/** Returns the values of the constants with a name. */
function constantsOf(text: string, name: string): string[] {
  const pattern = new RegExp(String.raw`const ${name}(?:: string)? =\s*${LITERALS}`, "g");
  return [...text.matchAll(pattern)].map(([, literal = ""]) => literal);
}

/** Returns the value of a local constant of the function that ends with `before`; `undefined` if there is none. */
function localsOf(before: string, name: string): string[] | undefined {
  const body = before.slice(before.lastIndexOf("\nfunction ") + 1);
  const values = constantsOf(body.slice(body.lastIndexOf("\nexport ") + 1), name).slice(-1);
  return values.length === 0 ? undefined : values;
}

/** Returns the texts with which the function around an offset is called. */
function argumentsOf(text: string, index: number): string[] {
  const [, name] = [...text.slice(0, index).matchAll(/(?:function |^ {2}#?)([A-Za-z]+)\(/gm)].at(-1) ?? [];
  if (name === undefined) return [];
  const pattern = new RegExp(String.raw`(?<!function )\b${name}\((?:[^"'\`();{}]*,)?\s*${LITERALS}`, "g");
  return [...text.matchAll(pattern)].map(([, literal = ""]) => literal);
}

/** Returns the text of literals, with … in place of each `${…}`. */
function plain(literals: string): string {
  const pieces = literals.match(new RegExp(LITERAL, "g")) ?? [];
  return pieces.map((piece) => withoutValues(piece.slice(1, -1))).join("").replaceAll(/\\(.)/g, "$1")
    .replaceAll(/\s+/g, " ");
}

/** Replaces each `${…}` by …, even if another one is inside it. */
function withoutValues(text: string): string {
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
