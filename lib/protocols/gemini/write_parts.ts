/** Writes an answer as parts. Pieces of a stream and whole answers have the same form. */
import { signedCallId } from "../canonical/signature.ts";
import { inputOf } from "../canonical/tool_input.ts";
import type { OpenBlock, Prompt, ReplyEvent, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { NATIVE, type ReasoningBlock, sealReasoning, TEXT, TEXT_BEFORE } from "./signatures.ts";

/** True if the client wants to see the model's thoughts. */
function showsThoughts({ reasoning }: Pick<Prompt, "reasoning">): boolean {
  return reasoning?.display === "summarized" || reasoning?.display === "full";
}

/**
 * Turns the events of an answer into parts. A call is written when it is complete. Signatures are on the parts after the
 * reasoning: Google's own as they are, all others as an envelope with the reasoning in it.
 */
export class PartWriter {
  readonly #includeThoughts: boolean;
  #block: OpenBlock | undefined;
  #text: string[] = [];
  /** Reasoning that no part has carried yet. */
  #pending: ReasoningBlock[] = [];
  /** Google's signature of the next text. */
  #ofText: string | undefined;
  /** Google's signatures by call id. */
  readonly #ofCalls = new Map<string, string>();
  #refused = false;

  constructor(prompt: Pick<Prompt, "reasoning">) {
    this.#includeThoughts = showsThoughts(prompt);
  }

  /** True if the answer has a refusal. */
  get refused(): boolean {
    return this.#refused;
  }

  /** The parts of an event. */
  push(event: ReplyEvent): JsonObject[] {
    switch (event.type) {
      case "open":
        this.#block = event.block;
        this.#text = [];
        if (event.block.type !== "vendor_specific" || event.block.from !== "gemini") return [];
        return [event.block.value];
      case "delta":
        return this.#write(event.text);
      case "close":
        return this.#close(event.signature);
      case "finish":
        return this.#end();
      default:
        return [];
    }
  }

  #write(text: string): JsonObject[] {
    switch (this.#block?.type) {
      case "refusal":
      case "text":
        this.#refused ||= this.#block.type === "refusal";
        return [{ text, ...this.#signText() }];
      case "reasoning":
        this.#text.push(text);
        return this.#includeThoughts && this.#block.hidden !== true ? [{ text, thought: true }] : [];
      case "tool_call":
        this.#text.push(text);
        return [];
      default:
        return [];
    }
  }

  #close(signature: Signature | undefined): JsonObject[] {
    const block = this.#block;
    this.#block = undefined;
    const text = this.#text.join("");
    if (block?.type === "tool_call") {
      const { id, name, custom } = block;
      const args = inputOf({ type: "tool_call", id, name, arguments: text, ...(custom === true && { custom }) });
      return [{ functionCall: { id, name, args }, ...this.#signCall(id) }];
    }
    if (block?.type !== "reasoning") return [];
    if (signature?.issuer === NATIVE && text === "" && signature.id !== undefined) return this.#takeOwn(signature);
    if (text !== "" || signature !== undefined) {
      this.#pending.push({
        type: "reasoning",
        text,
        ...(block.hidden === true && { hidden: true }),
        ...(signature !== undefined && { signature }),
      });
    }
    return [];
  }

  /** Google's signatures belong to one part each. */
  #takeOwn(signature: Signature): JsonObject[] {
    const { id, value } = signature;
    const callId = signedCallId(id);
    if (callId !== undefined) this.#ofCalls.set(callId, value);
    else if (id === TEXT) this.#ofText = value;
    else if (id === TEXT_BEFORE) return [{ text: "", thoughtSignature: value }];
    else this.#pending.push({ type: "reasoning", text: "", hidden: true, signature });
    return [];
  }

  /** Text needs only signed reasoning back. */
  #signText(): JsonObject {
    const own = this.#ofText;
    this.#ofText = undefined;
    if (own !== undefined) return { thoughtSignature: own };
    return this.#pending.some(({ signature }) => signature !== undefined) ? this.#seal() : {};
  }

  /** With calls some models, such as DeepSeek's, want unsigned reasoning back as well. */
  #signCall(id: string): JsonObject {
    const own = this.#ofCalls.get(id);
    if (own !== undefined) return { thoughtSignature: own };
    return this.#pending.length > 0 ? this.#seal() : {};
  }

  #seal(): JsonObject {
    return { thoughtSignature: sealReasoning(this.#pending.splice(0)) };
  }

  /** Signatures that no other part carries. */
  #end(): JsonObject[] {
    const signed = this.#signText();
    return signed.thoughtSignature === undefined ? [] : [{ text: "", ...signed }];
  }
}
