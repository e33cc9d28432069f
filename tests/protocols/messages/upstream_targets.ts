/** Prompts and targets for tests of writing requests to upstreams. */
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import { runToEnd } from "../../../lib/scheduler.ts";
import type { ContentBlock, Message, Prompt } from "../../../lib/protocols/canonical/types.ts";
import { modelSchema } from "../../../lib/catalog/model.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";
import type { WriteTarget } from "../../../lib/protocols/upstream_codec.ts";
import { promptOf } from "../canonical/messages.ts";
import { EVERY_PARAMETER } from "../canonical/every_parameter.ts";

/** A target whose row supports everything, with these changes. */
export function targetOf(row: Record<string, unknown> = {}): WriteTarget {
  return {
    model: "vendor-model-1",
    row: modelSchema.parse({
      id: "vendor/model",
      created: 0,
      context_length: 200_000,
      architecture: { input_modalities: ["text", "image", "file"] },
      pricing: { prompt: "0", completion: "0" },
      top_provider: { max_completion_tokens: 64_000 },
      supported_parameters: EVERY_PARAMETER,
      reasoning: {
        modes: ["manual", "adaptive"],
        efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
      },
      features: { prefill: true, system_messages: true },
      targets: [{ upstream: "vendor", model: "vendor-model-1" }],
      ...row,
    }),
    issuer: "anthropic",
    dialect: messagesUpstream.dialect,
    dropped: new UnsupportedParameters(),
  };
}

/** A message of texts and blocks. */
export function messageOf(role: Message["role"], ...blocks: (string | ContentBlock)[]): Message {
  return { role, blocks: blocks.map((block) => typeof block === "string" ? { type: "text", text: block } : block) };
}

/** The written prompt, and the names of dropped parameters. */
export function write(
  members: Partial<Prompt>,
  row?: Record<string, unknown>,
): { body: JsonObject; dropped: readonly string[] } {
  const target = targetOf(row);
  const body = runToEnd(messagesUpstream.writePrompt(promptOf([messageOf("user", "Hi")], members), target));
  return { body, dropped: target.dropped.names };
}
