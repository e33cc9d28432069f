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
  /** The text around the directives, trimmed, one line per part. */
  text: string;
}

/** Limits of JSON in answers. It becomes part of the next request, some levels deep, and must fit into its limits. */
export const LIMITS: JsonLimits = { ...JSON_LIMITS, depth: JSON_LIMITS.depth - 16 };

/**
 * Reads at most `maxCalls` directives of a text. A directive is at the start of a line, or follows the arguments of another
 * directive. Its JSON object begins on the same line and may continue over several lines. The input of a custom tool is
 * the rest of the line, or the string in `{"input": "…"}` on it. A directive with an unknown tool or without valid JSON
 * stays a part of the text, and so do directives above the maximum.
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
  let from = 0;
  for (let match = pattern.exec(text); match !== null && directives.length < maxCalls; match = pattern.exec(text)) {
    const tool = byName.get(match[2] ?? "");
    // A directive may follow a brace only if the brace closes another directive.
    const beginsLine = match.index === 0 || /[\n\r\u2028\u2029]/.test(text.charAt(match.index - 1));
    if (tool === undefined || (!beginsLine && match.index !== from)) continue;
    const start = pattern.lastIndex;
    const read = tool.type === "custom" ? readInput(text, start) : readObject(text, start);
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
  if (directives.length === 0) return { directives, text };
  keptTexts.push(text.slice(from));
  const kept = keptTexts.map((part) => part.trim()).filter((part) => part !== "");
  return { directives, text: kept.join("\n") };
}

function setIfAbsent(map: Map<string, CallableTool>, name: string, tool: CallableTool): void {
  if (!map.has(name)) map.set(name, tool);
}

interface ReadArguments {
  /** Their end in the text. */
  end: number;
  valid: boolean;
  /** The input of a custom tool, if it is not the text up to `end`. */
  input?: string;
}

function readInput(text: string, start: number): ReadArguments {
  const end = endOfLine(text, start);
  const line = text.slice(start, end).trimEnd();
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
