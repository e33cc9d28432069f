/** Prompts for tests of the embedded model, and a way to have them answered. */
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import type { ContentBlock, Prompt, ReplyEvent, Tool } from "../../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../../lib/catalog/model.ts";
import { createEmbedded } from "../../../lib/upstreams/embedded/mod.ts";
import type { Call, EventFeed } from "../../../lib/upstreams/upstream.ts";
import { plainModel } from "../../support/plain_model.ts";

/** A row for the model, with a limit on its answers. */
export function echoModel(maxCompletionTokens = 32_768): Model {
  return modelSchema.parse(plainModel({
    id: "test/echo",
    context_length: 131_072,
    architecture: { input_modalities: ["text", "image", "file"] },
    top_provider: { max_completion_tokens: maxCompletionTokens },
    reasoning: { modes: ["manual", "adaptive"] },
  }));
}

/** A function tool. */
export function tool(name: string, more: Partial<Extract<Tool, { type: "function" }>> = {}): Tool {
  return { type: "function", name, ...more };
}

/** A call of the upstream. */
export function callOf(prompt: Prompt, more: Partial<Call> = {}): Call {
  const model = more.model ?? echoModel();
  return {
    prompt,
    client: {
      responseContext: { requestId: "r1", createdAt: 1, model: prompt.model, request: {}, prompt },
      body: { text: "{}", members: [] },
      header: () => null,
    },
    model,
    target: { upstream: "embedded", model: "echo", priority: 0, weight: 1 },
    countInput: () => Promise.resolve(7),
    signal: new AbortController().signal,
    dropped: new UnsupportedParameters(),
    ...more,
  };
}

/** The feed of echo's answer. */
export async function echoFeed(prompt: Prompt, more: Partial<Call> = {}): Promise<EventFeed> {
  const answer = await createEmbedded().generate(callOf(prompt, more));
  if (answer.type !== "events") throw new TypeError("Expected events");
  return answer.feed;
}

/** All events of the answer to a prompt. */
export async function eventsOf(prompt: Prompt, more: Partial<Call> = {}): Promise<ReplyEvent[]> {
  const feed = await echoFeed(prompt, more);
  const events: ReplyEvent[] = [];
  for (let read = await feed.read(); read !== undefined; read = await feed.read()) events.push(...read);
  return events;
}

/** A PNG of the given size: its header is all that is read. */
export function png(width: number, height: number): ContentBlock {
  const bytes = [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52];
  for (const side of [width, height]) bytes.push(side >>> 24, side >>> 16 & 255, side >>> 8 & 255, side & 255);
  bytes.push(8, 6, 0, 0, 0);
  return {
    type: "media",
    media: { kind: "bytes", mediaType: "image/png", base64: btoa(String.fromCharCode(...bytes)) },
  };
}
