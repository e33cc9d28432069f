/** Prompts and targets that the tests of this protocol share. */
import { UnsupportedParameters } from "../../../lib/protocols/canonical/unsupported_parameters.ts";
import { runToEnd } from "../../../lib/scheduler.ts";
import type { ContentBlock, Prompt } from "../../../lib/protocols/canonical/types.ts";
import { type Model, modelSchema } from "../../../lib/catalog/model.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { geminiUpstream } from "../../../lib/protocols/gemini/upstream.ts";
import type { WriteTarget } from "../../../lib/protocols/upstream_codec.ts";
import { promptOf, user } from "../canonical/messages.ts";
import { EVERY_PARAMETER } from "../canonical/every_parameter.ts";

/** A catalog row that takes every parameter, and the members given. */
export function rowOf(members: Partial<Model> = {}): Model {
  return {
    ...modelSchema.parse({
      id: "google/gemini",
      created: 0,
      context_length: 1_000_000,
      pricing: { prompt: "0", completion: "0" },
      supported_parameters: EVERY_PARAMETER,
      targets: [{ upstream: "google", model: "gemini" }],
    }),
    ...members,
  };
}

/** A target whose model has this row. */
export function targetOf(row: Model = rowOf()): WriteTarget {
  return {
    model: "gemini",
    row,
    issuer: "google",
    dialect: geminiUpstream.dialect,
    dropped: new UnsupportedParameters(),
  };
}

/** The written prompt, and the names of dropped parameters. */
export function write(
  members: Partial<Prompt>,
  row?: Partial<Model>,
): { body: JsonObject; dropped: readonly string[] } {
  const prompt = promptOf([user("Hi")], members);
  const target = targetOf(rowOf(row));
  const body = runToEnd(geminiUpstream.writePrompt(prompt, target));
  return { body, dropped: target.dropped.names };
}

/** A block of text. */
export function text(text: string): ContentBlock {
  return { type: "text", text };
}
