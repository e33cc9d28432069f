/**
 * Formats the model list that Codex reads: `ModelsResponse` in codex-rs/protocol/src/openai_models.rs of openai/codex.
 */
import type { Endpoint } from "../access/access_table.ts";
import type { JsonObject } from "../json/mod.ts";
import type { Effort } from "../protocols/canonical/types.ts";
import type { Model } from "./model.ts";

/** The endpoint that Codex calls. */
export const CODEX_ENDPOINT: Endpoint = "responses";

/** Models that are left out: Codex has built-in facts and instructions for them, which a row would replace. */
const KNOWN_TO_CODEX = /\/gpt-(?:[5-9]|[1-9]\d)/;

/** First minor version of Codex 0 that accepts the effort `max`. Older ones reject the whole list because of it. */
const FIRST_MINOR_WITH_MAX = 144;

/** Descriptions of efforts shown by Codex. */
const EFFORT_TEXTS: Readonly<Record<Effort, string>> = {
  none: "No reasoning",
  minimal: "Hardly any reasoning",
  low: "Short reasoning",
  medium: "Reasoning as most tasks need it",
  high: "Long reasoning for hard tasks",
  xhigh: "Very long reasoning",
  max: "As much reasoning as the model can do",
};

/** Tokens to which Codex truncates one tool output: the value of its built-in list. */
const TOOL_OUTPUT_TOKENS = 10_000;

/** System prompt for the models of this list. A row must have one, and Codex does not add its own. */
const INSTRUCTIONS = `You are Codex, a coding agent in a terminal. You work in the user's own workspace.

- Go on until the task is done. Ask only about decisions that the user has to make.
- Read the files that matter before you change them. Follow the instructions in AGENTS.md files.
- Keep changes small and focused, in the style of the code around them. Fix causes, not symptoms.
- Use the shell for commands, and \`rg\` to search. Never undo changes that you did not make, and do not run destructive
  commands that the user did not ask for.
- Check your work with the project's own tests and tools.
- Before a group of commands, say in one sentence what you are about to do. At the end, say briefly what you changed and
  what you could not check.`;

/**
 * Formats models for a version of Codex, without those that Codex knows itself.
 * @param clientVersion version as in the query, such as `0.169.0`
 */
export function codexList(models: readonly Model[], clientVersion: string): JsonObject {
  const [major = 0, minor = 0] = clientVersion.split(".").map(Number);
  const readsMax = major > 0 || minor >= FIRST_MINOR_WITH_MAX;
  const rows = models.filter(({ id }) => !KNOWN_TO_CODEX.test(id));
  return { models: rows.map((model, priority) => codexModel(model, { priority, readsMax })) };
}

/** Formats one model. It sets every member that has no default in Codex: a missing one makes Codex reject the list. */
function codexModel(
  { id, name, description, context_length, architecture, supported_parameters, reasoning }: Model,
  { priority, readsMax }: { priority: number; readsMax: boolean },
): JsonObject {
  const levels = reasoning?.efforts.filter((effort) => effort !== "max" || readsMax) ?? [];
  const defaultLevel = levels.includes("medium") ? "medium" : levels.find((effort) => effort !== "none");
  const hasTools = supported_parameters.includes("tools");
  return {
    slug: id,
    display_name: name,
    description: description === "" ? null : description,
    ...(defaultLevel !== undefined && { default_reasoning_level: defaultLevel }),
    supported_reasoning_levels: levels.map((effort) => ({ effort, description: EFFORT_TEXTS[effort] })),
    shell_type: hasTools ? "shell_command" : "disabled",
    visibility: hasTools ? "list" : "hide",
    supported_in_api: true,
    priority,
    upgrade: null,
    base_instructions: INSTRUCTIONS,
    // Codex uses the second name since 2026-11.
    supports_reasoning_summaries: reasoning !== undefined,
    supports_reasoning_summary_parameter: reasoning !== undefined,
    support_verbosity: supported_parameters.includes("verbosity"),
    default_verbosity: null,
    apply_patch_tool_type: null,
    truncation_policy: { mode: "tokens", limit: TOOL_OUTPUT_TOKENS },
    supports_parallel_tool_calls: hasTools,
    context_window: context_length,
    experimental_supported_tools: [],
    input_modalities: ["text", "image"].filter((kind) => architecture.input_modalities.includes(kind)),
  };
}
