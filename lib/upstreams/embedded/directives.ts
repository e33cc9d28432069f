/** Reads directives `call:NAME {json}` in a user's text, which make the echo model call a tool. */
import type { Tool } from "../../protocols/canonical/types.ts";
import { isObject, JSON_LIMITS, type JsonLimits, parseJson } from "../../json/mod.ts";

/** A tool that can be called: hosted ones cannot. */
export type CallableTool = Exclude<Tool, { type: "hosted" }>;

/** A call that the text asks for. */
export interface Directive {
  tool: CallableTool;
  /** Arguments as written: JSON text, or the input of a custom tool. Absent if the text has none. */
  arguments?: string;
}

/** The directives of a text, and the text without them. */
export interface Directives {
  directives: Directive[];
  /** The text around the directives, trimmed. */
  text: string;
}

/** Limits of JSON in answers. It becomes part of the next request, some levels deep, and must fit into its limits. */
export const LIMITS: JsonLimits = { ...JSON_LIMITS, depth: JSON_LIMITS.depth - 16 };

/**
 * Reads at most `maxCalls` directives of a text. A directive is at the start of a line, or follows the arguments of another
 * directive. Its JSON object begins on the same line and may continue over several lines. The input of a custom tool is
 * the rest of the line, the string in `{"input": "…"}` on it, or, if the line has nothing else, a fenced block below
 * it. A directive with an unknown tool or without valid JSON stays a part of the text, and so do directives above the
 * maximum.
 */
export function readDirectives(
  text: string,
  { tools, maxCalls }: { tools: readonly CallableTool[]; maxCalls: number },
): Directives {
  const byName = new Map<string, CallableTool>();
  for (const tool of tools) {
    if (tool.namespace !== undefined) setIfAbsent(byName, `${tool.namespace}.${tool.name}`, tool);
    setIfAbsent(byName, tool.name, tool);
  }
  const pattern = /(^[ \t]*|(?<=\})[ \t]*)call:([A-Za-z0-9_.:-]+)(?=[\s{]|$)[ \t]*/gm;
  const directives: Directive[] = [];
  const keptTexts: string[] = [];
  const fences = new Fences(text);
  let from = 0;
  for (let match = pattern.exec(text); match !== null && directives.length < maxCalls; match = pattern.exec(text)) {
    const tool = byName.get(match[2] ?? "");
    // A directive may follow a brace only if the brace closes another directive.
    if (tool === undefined || (!beginsLine(text, match.index) && match.index !== from)) continue;
    const start = pattern.lastIndex;
    const read = tool.type === "custom" ? readInput(text, start, fences) : readObject(text, start);
    // Stop at unclosed braces. Otherwise the rest of the text would be scanned once per directive.
    if (read === undefined) break;
    if (read.valid) {
      const written = read.input ?? (read.end > start ? text.slice(start, read.end) : undefined);
      directives.push({ tool, ...(written !== undefined && { arguments: written }) });
      keptTexts.push(text.slice(from, match.index));
      from = read.end;
    }
    pattern.lastIndex = Math.max(read.end, start);
  }
  keptTexts.push(text.slice(from));
  return { directives, text: directives.length === 0 ? text : joinKept(keptTexts) };
}

function setIfAbsent(map: Map<string, CallableTool>, name: string, tool: CallableTool): void {
  if (!map.has(name)) map.set(name, tool);
}

function beginsLine(text: string, index: number): boolean {
  return index === 0 || /[\n\r\u2028\u2029]/.test(text.charAt(index - 1));
}

interface ReadArguments {
  /** Their end in the text. */
  end: number;
  valid: boolean;
  /** The input of a custom tool, if it is not the text up to `end`. */
  input?: string;
}

function readInput(text: string, start: number, fences: Fences): ReadArguments {
  const end = endOfLine(text, start);
  const line = text.slice(start, end).trimEnd();
  if (line === "") return fences.readAfter(end) ?? { end, valid: true };
  return { end, valid: true, ...(line.startsWith("{") && inputIn(line)) };
}

/** Reads the text of `{"input": "…"}`; empty for any other line. */
function inputIn(line: string): { input?: string } {
  try {
    const value = parseJson(line, LIMITS);
    if (!isObject(value) || typeof value.input !== "string" || Object.keys(value).length !== 1) return {};
    return { input: value.input };
  } catch {
    return {};
  }
}

function endOfLine(text: string, start: number): number {
  const lineFeed = text.indexOf("\n", start);
  const end = lineFeed < 0 ? text.length : lineFeed;
  return end > start && text[end - 1] === "\r" ? end - 1 : end;
}

class Fences {
  readonly #text: string;
  /** Length of the shortest unclosed fence. Fences of at least this length are not searched again. */
  #unclosed = Infinity;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Reads the fenced block that begins on the line after `lineEnd`; `undefined` if there is none, or if it has no end.
   */
  readAfter(lineEnd: number): ReadArguments | undefined {
    const opening = /\r?\n[ \t]*(`{3,})[^\r\n`]*\r?\n/y;
    opening.lastIndex = lineEnd;
    const fence = opening.exec(this.#text)?.[1];
    if (fence === undefined || fence.length >= this.#unclosed) return undefined;
    const start = opening.lastIndex;
    for (let lineStart = start; lineStart < this.#text.length;) {
      const end = endOfLine(this.#text, lineStart);
      const line = this.#text.slice(lineStart, end).trim();
      if (line.length >= fence.length && /^`+$/.test(line)) {
        return { end, valid: true, input: this.#text.slice(start, lineStart).replace(/\r?\n$/, "") };
      }
      const lineFeed = this.#text.indexOf("\n", end);
      if (lineFeed < 0) break;
      lineStart = lineFeed + 1;
    }
    this.#unclosed = fence.length;
    return undefined;
  }
}

/** Finds the end of the object at `start`: `start` itself if there is no object, `undefined` if it is not closed. */
function readObject(text: string, start: number): ReadArguments | undefined {
  if (text[start] !== "{") return { end: start, valid: true };
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (inString) {
      if (char === "\\") at++;
      else if (char === '"') inString = false;
    } else if (char === '"') {
      inString = true;
    } else if (char === "{" || char === "[") {
      depth++;
    } else if ((char === "}" || char === "]") && --depth === 0) {
      return { end: at + 1, valid: isJson(text.slice(start, at + 1)) };
    }
  }
  return undefined;
}

function isJson(text: string): boolean {
  try {
    parseJson(text, LIMITS);
    return true;
  } catch {
    return false;
  }
}

/** Joins the text between directives, one line per part. */
function joinKept(pieces: string[]): string {
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== "").join("\n");
}
