/** `call:NAME {json}` in a user's text: a tool call on demand. */
import type { Tool } from "../../canonical/types.ts";
import { JSON_LIMITS, parseJson } from "../../json.ts";

/** A tool that can be called: hosted ones cannot. */
export type CallableTool = Exclude<Tool, { type: "hosted" }>;

/** A call that the text asks for. */
export interface Directive {
  tool: CallableTool;
  /** As written: JSON text, or the input of a custom tool. Absent: the text gave none. */
  arguments?: string;
}

/** A text with its directives taken out. */
export interface Directives {
  directives: Directive[];
  /** What stands around them, without white space at either end. */
  text: string;
}

/** A call comes back inside the next request, some levels deep: what is more than a request may hold is never called. */
const LIMITS = { ...JSON_LIMITS, depth: JSON_LIMITS.depth - 16 };

/**
 * Reads the directives of a text, at most `most`. A directive begins a line, or follows the arguments of another. Its JSON
 * begins on the same line and may go on over several; a custom tool's input is the rest of the line. What names no tool, is
 * no JSON object, or is one too many is plain text.
 */
export function readDirectives(
  text: string,
  { tools, most }: { tools: readonly CallableTool[]; most: number },
): Directives {
  const byName = new Map<string, CallableTool>();
  for (const tool of tools) {
    if (tool.namespace !== undefined) setOnce(byName, `${tool.namespace}.${tool.name}`, tool);
    setOnce(byName, tool.name, tool);
  }
  const pattern = /(^[ \t]*|(?<=\})[ \t]*)call:([A-Za-z0-9_.:-]+)(?=[\s{]|$)[ \t]*/gm;
  const directives: Directive[] = [];
  const kept: string[] = [];
  let from = 0;
  for (let match = pattern.exec(text); match !== null && directives.length < most; match = pattern.exec(text)) {
    const tool = byName.get(match[2] ?? "");
    // A brace inside a sentence begins no line: only the one that closed a directive does.
    if (tool === undefined || (!beginsLine(text, match.index) && match.index !== from)) continue;
    const start = pattern.lastIndex;
    const read = tool.type === "custom" ? restOfLine(text, start) : readObject(text, start);
    // Braces that never close: looking further would scan the same text again and again.
    if (read === undefined) break;
    if (read.valid) {
      directives.push({ tool, ...(read.end > start && { arguments: text.slice(start, read.end) }) });
      kept.push(text.slice(from, match.index));
      from = read.end;
    }
    pattern.lastIndex = Math.max(read.end, start);
  }
  kept.push(text.slice(from));
  return { directives, text: directives.length === 0 ? text : joinKept(kept) };
}

function setOnce(map: Map<string, CallableTool>, name: string, tool: CallableTool): void {
  if (!map.has(name)) map.set(name, tool);
}

function beginsLine(text: string, index: number): boolean {
  return index === 0 || /[\n\r\u2028\u2029]/.test(text.charAt(index - 1));
}

interface Read {
  end: number;
  valid: boolean;
}

function restOfLine(text: string, start: number): Read {
  const end = text.slice(start).search(/[\r\n]/);
  return { end: end < 0 ? text.length : start + end, valid: true };
}

/** Where the object at `start` ends: at `start` itself where there is none; undefined where it does not end. */
function readObject(text: string, start: number): Read | undefined {
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

/** What is left of the text, a line for each piece between directives. */
function joinKept(pieces: string[]): string {
  return pieces.map((piece) => piece.trim()).filter((piece) => piece !== "").join("\n");
}
