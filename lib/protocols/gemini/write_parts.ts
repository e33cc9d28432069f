/** Writes the events of an answer as parts, which streamed and whole answers have in the same form. */
import { GOOGLE_ISSUER, signatureBlock, signedCallId } from "../canonical/signature.ts";
import { inputOf } from "../canonical/tool_input.ts";
import type { OpenBlock, Prompt, ReplyEvent, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { present } from "../members.ts";
import { PRECEDING_TEXT_SIGNATURE_ID, type ReasoningBlock, sealReasoning, TEXT_SIGNATURE_ID } from "./signatures.ts";

/**
 * Turns the events of an answer into parts. A call is written when it is complete. Signatures are on the parts after
 * the reasoning: Google's as they are, others in an envelope that contains the reasoning.
 */
export class PartWriter {
  /** True if the client asked for the model's thoughts. */
  readonly #showsThoughts: boolean;
  #block: OpenBlock | undefined;
  #deltas: string[] = [];
  /** Reasoning that is not in the signature of any part yet. */
  #pending: ReasoningBlock[] = [];
  /** Google's signature of the next text. */
  #textSignature: string | undefined;
  /** Google's signatures by call id. */
  readonly #callSignatures = new Map<string, string>();
  #refused = false;

  constructor({ reasoning }: Pick<Prompt, "reasoning">) {
    this.#showsThoughts = reasoning?.display === "summarized" || reasoning?.display === "full";
  }

  /** True if the answer has a refusal. */
  get refused(): boolean {
    return this.#refused;
  }

  /** Returns the parts of an event. */
  push(event: ReplyEvent): JsonObject[] {
    switch (event.type) {
      case "open":
        this.#block = event.block;
        this.#deltas = [];
        if (event.block.type !== "vendor_specific" || event.block.from !== "gemini") return [];
        return [event.block.value];
      case "delta":
        return this.#write(event.text);
      case "close":
        return this.#close(event.signature);
      case "finish":
        return this.#writeRemaining();
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
        this.#deltas.push(text);
        return this.#showsThoughts && this.#block.hidden !== true ? [{ text, thought: true }] : [];
      case "tool_call":
        this.#deltas.push(text);
        return [];
      default:
        return [];
    }
  }

  #close(signature: Signature | undefined): JsonObject[] {
    const block = this.#block;
    this.#block = undefined;
    const text = this.#deltas.join("");
    if (block?.type === "tool_call") {
      const { id, name, custom } = block;
      const args = inputOf({ type: "tool_call", id, name, arguments: text, ...(custom === true && { custom }) });
      return [{ functionCall: { id, name, args }, ...this.#signCall(id) }];
    }
    if (block?.type !== "reasoning") return [];
    if (signature?.issuer === GOOGLE_ISSUER && text === "" && signature.id !== undefined) {
      return this.#readNative(signature);
    }
    if (text !== "" || signature !== undefined) {
      this.#pending.push({ type: "reasoning", text, ...present({ hidden: block.hidden, signature }) });
    }
    return [];
  }

  /** Reads a signature of Google, which belongs to a single part. */
  #readNative(signature: Signature): JsonObject[] {
    const { id, value } = signature;
    const callId = signedCallId(id);
    if (callId !== undefined) this.#callSignatures.set(callId, value);
    else if (id === TEXT_SIGNATURE_ID) this.#textSignature = value;
    else if (id === PRECEDING_TEXT_SIGNATURE_ID) return [{ text: "", thoughtSignature: value }];
    else this.#pending.push(signatureBlock(signature));
    return [];
  }

  /** Returns the signature of a text. Only signed reasoning must come back with a text. */
  #signText(): JsonObject {
    const nativeValue = this.#textSignature;
    this.#textSignature = undefined;
    if (nativeValue !== undefined) return { thoughtSignature: nativeValue };
    return this.#pending.some(({ signature }) => signature !== undefined) ? this.#writeEnvelope() : {};
  }

  /** Returns the signature of a call. Some models, such as DeepSeek's, require unsigned reasoning with calls, too. */
  #signCall(id: string): JsonObject {
    const nativeValue = this.#callSignatures.get(id);
    if (nativeValue !== undefined) return { thoughtSignature: nativeValue };
    return this.#pending.length > 0 ? this.#writeEnvelope() : {};
  }

  #writeEnvelope(): JsonObject {
    return { thoughtSignature: sealReasoning(this.#pending.splice(0)) };
  }

  /** Returns a part with the signatures that no other part has; none if there are none. */
  #writeRemaining(): JsonObject[] {
    const signed = this.#signText();
    return signed.thoughtSignature === undefined ? [] : [{ text: "", ...signed }];
  }
}
