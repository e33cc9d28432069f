/**
 * Accumulates a stream of the messages protocol into a message like its official SDKs, independently of our writer. One
 * difference: the SDKs ignore `cache_creation` of the closing usage.
 */
import { isObject, type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";

/**
 * The message that frames spell out.
 * @throws {Error} with the body of an error event, and on anything an SDK would stumble over
 */
export function accumulate(frames: readonly Frame[]): JsonObject {
  let message: JsonObject | undefined;
  let stopped = false;
  const blocks: JsonObject[] = [];
  const inputs = new Map<number, string>();
  const closed = new Set<number>();

  for (const { event, data } of frames) {
    const body = object(parseJson(data));
    if (event === undefined) throw new Error(`Event without a name: ${data}`);
    if (body.type !== event) throw new Error(`Event ${event} has the type ${body.type}`);
    if (stopped) throw new Error(`Event ${event} after the end`);
    switch (event) {
      case "message_start":
        if (message !== undefined) throw new Error("Two message_start");
        message = object(body.message);
        object(message.usage);
        break;
      case "ping":
        if (message === undefined) throw new Error("ping before message_start");
        break;
      case "content_block_start":
        if (body.index !== blocks.length || closed.size !== blocks.length) throw new Error(`Index ${body.index}`);
        blocks.push({ ...object(body.content_block) });
        break;
      case "content_block_delta": {
        const index = Number(body.index);
        const block = blocks[index];
        if (block === undefined || closed.has(index)) throw new Error(`Delta of block ${index}, which is not open`);
        applyDelta(block, object(body.delta), (piece) => inputs.set(index, (inputs.get(index) ?? "") + piece));
        break;
      }
      case "content_block_stop":
        if (closed.has(Number(body.index))) throw new Error(`Block ${body.index} closed twice`);
        closed.add(Number(body.index));
        break;
      case "message_delta": {
        if (message === undefined) throw new Error("message_delta before message_start");
        const known = Object.entries(object(body.usage)).filter(([, value]) => value !== null);
        Object.assign(message, body.delta, { usage: { ...object(message.usage), ...Object.fromEntries(known) } });
        break;
      }
      case "message_stop":
        stopped = true;
        break;
      case "error":
        throw new Error(data);
      default:
        throw new Error(`Unknown event ${event}`);
    }
  }
  if (message === undefined || !stopped || closed.size !== blocks.length) throw new Error("The stream was cut");
  for (const [index, text] of inputs) Object.assign(blocks[index] ?? {}, { input: parseJson(text || "{}") });
  return { ...message, content: blocks };
}

function applyDelta(block: JsonObject, delta: JsonObject, addInput: (piece: string) => void): void {
  switch (delta.type) {
    case "text_delta":
      block.text = `${block.text}${delta.text}`;
      break;
    case "thinking_delta":
      block.thinking = `${block.thinking}${delta.thinking}`;
      break;
    case "signature_delta":
      block.signature = delta.signature;
      break;
    case "citations_delta":
      block.citations = [...(Array.isArray(block.citations) ? block.citations : []), delta.citation ?? null];
      break;
    case "input_json_delta":
      if (typeof delta.partial_json !== "string") throw new Error("Expected partial_json");
      addInput(delta.partial_json);
      break;
    default:
      throw new Error(`Unknown delta ${delta.type}`);
  }
}

function object(value: Json | undefined): JsonObject {
  if (!isObject(value)) throw new Error(`Expected an object, got ${JSON.stringify(value)}`);
  return value;
}
