/** Reads answers for the playground: text, tool calls and images, from stream events or from a whole body. */
import { isObject, type Json } from "../json/mod.ts";
import { isText, type PlaygroundEndpoint } from "./playground_request.ts";

/** A tool call. */
export interface ToolCallText {
  name: string;
  arguments: string;
}

/** Longest raw answer that is kept, in characters. */
const MAX_RAW_CHARACTERS = 100_000;

/** The part of an answer that has arrived. */
export class PlaygroundAnswer {
  text = "";
  /** The answer as it arrived, cut after 100,000 characters. */
  raw = "";
  /** Message of an error; `undefined`: there is none. */
  problem: string | undefined;
  /** Images as `data:` URLs. */
  readonly images: string[] = [];
  readonly #endpoint: PlaygroundEndpoint;
  readonly #calls = new Map<number, ToolCallText>();

  constructor(endpoint: PlaygroundEndpoint) {
    this.#endpoint = endpoint;
  }

  get calls(): ToolCallText[] {
    return [...this.#calls.values()];
  }

  /** Reads the data of a stream event. @returns the text that it adds */
  addEvent(data: string): string {
    if (data === "[DONE]") return "";
    this.#addRaw(`${data}\n`);
    const event = parse(data);
    this.#findProblem(event);
    const before = this.text.length;
    if (this.#endpoint === "chat") this.#addChunk(event);
    else if (this.#endpoint === "responses") this.#addResponseEvent(event);
    else if (this.#endpoint === "gemini") this.#addParts(event);
    else this.#addMessageEvent(event);
    return this.text.slice(before);
  }

  /** Reads the body of an answer that is not streamed. */
  addBody(body: string): void {
    const value = parse(body);
    this.#findProblem(value);
    if (this.problem !== undefined || isText(this.#endpoint)) this.#addRaw(body);
    switch (this.#endpoint) {
      case "chat": {
        const message = at(value, "choices", 0, "message");
        this.text = textOf(at(message, "content"));
        for (const call of listOf(at(message, "tool_calls"))) this.#addCall(at(call, "function"));
        break;
      }
      case "responses":
        for (const item of listOf(at(value, "output"))) this.#addItem(item);
        break;
      case "messages":
        for (const block of listOf(at(value, "content"))) {
          this.text += textOf(at(block, "text"));
          if (at(block, "type") === "tool_use") this.#addCall(block, JSON.stringify(at(block, "input")));
        }
        break;
      case "gemini":
        this.#addParts(value);
        break;
      case "images":
        for (const image of listOf(at(value, "data"))) {
          const type = textOf(at(value, "output_format")) || "png";
          this.images.push(`data:image/${type};base64,${textOf(at(image, "b64_json"))}`);
        }
        break;
      case "embeddings":
        this.text = listOf(at(value, "data")).map((row) => vectorText(listOf(at(row, "embedding")))).join("\n");
        break;
      case "rerank":
        this.text = listOf(at(value, "results"))
          .map((result) => `${at(result, "relevance_score")}  document ${Number(at(result, "index")) + 1}`).join("\n");
    }
  }

  #addChunk(event: Json): void {
    const delta = at(event, "choices", 0, "delta");
    this.text += textOf(at(delta, "content"));
    for (const call of listOf(at(delta, "tool_calls"))) {
      this.#extendCall(Number(at(call, "index") ?? 0), textOf(at(call, "function", "name")), {
        more: textOf(at(call, "function", "arguments")),
      });
    }
  }

  #addResponseEvent(event: Json): void {
    const type = at(event, "type");
    if (type === "response.output_text.delta") this.text += textOf(at(event, "delta"));
    if (type === "response.output_item.done" && at(event, "item", "type") === "function_call") {
      this.#addCall(at(event, "item"));
    }
  }

  #addMessageEvent(event: Json): void {
    const index = Number(at(event, "index") ?? 0);
    this.text += textOf(at(event, "delta", "text"));
    if (at(event, "content_block", "type") === "tool_use") {
      this.#extendCall(index, textOf(at(event, "content_block", "name")), { more: "" });
    }
    const more = at(event, "delta", "partial_json");
    if (more !== undefined) this.#extendCall(index, "", { more: textOf(more) });
  }

  /** Adds the parts of a Gemini answer or stream event, which have the same form. */
  #addParts(answer: Json): void {
    for (const part of listOf(at(answer, "candidates", 0, "content", "parts"))) {
      if (at(part, "thought") !== true) this.text += textOf(at(part, "text"));
      const call = at(part, "functionCall");
      if (call !== undefined) this.#addCall(call, JSON.stringify(at(call, "args") ?? {}));
      const data = textOf(at(part, "inlineData", "data"));
      const type = textOf(at(part, "inlineData", "mimeType"));
      if (/^image\/\w+$/.test(type)) this.images.push(`data:${type};base64,${data}`);
    }
  }

  #addItem(item: Json): void {
    if (at(item, "type") === "function_call") this.#addCall(item);
    for (const part of listOf(at(item, "content"))) this.text += textOf(at(part, "text"));
  }

  #addCall(call: Json | undefined, input: string = textOf(at(call, "arguments"))): void {
    this.#calls.set(this.#calls.size, { name: textOf(at(call, "name")), arguments: input });
  }

  #extendCall(index: number, name: string, { more }: { more: string }): void {
    const call = this.#calls.get(index) ?? { name: "", arguments: "" };
    this.#calls.set(index, { name: call.name + name, arguments: call.arguments + more });
  }

  #findProblem(value: Json): void {
    const message = at(value, "error", "message") ?? at(value, "response", "error", "message");
    if (typeof message === "string") this.problem = message;
  }

  #addRaw(text: string): void {
    if (this.raw.length < MAX_RAW_CHARACTERS) this.raw += text.slice(0, MAX_RAW_CHARACTERS - this.raw.length);
  }
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns the value at a path within a value; `undefined` if there is none. */
function at(value: Json | undefined, ...path: (string | number)[]): Json | undefined {
  let current = value;
  for (const step of path) {
    if (typeof step === "number") current = Array.isArray(current) ? current[step] : undefined;
    else current = isObject(current) ? current[step] : undefined;
  }
  return current;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Number of components of a vector that are shown. */
const SHOWN_NUMBERS = 8;

function vectorText(vector: readonly Json[]): string {
  const more = vector.length > SHOWN_NUMBERS ? ", …" : "";
  return `${vector.length} dimensions: [${vector.slice(0, SHOWN_NUMBERS).join(", ")}${more}]`;
}
