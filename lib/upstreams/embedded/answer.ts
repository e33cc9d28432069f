/** What the echo model answers, before limits cut it. */
import { smallestInstance } from "../../protocols/canonical/smallest_instance.ts";
import type { ContentBlockOf, Prompt } from "../../protocols/canonical/types.ts";
import { isInstance } from "../../protocols/canonical/json_schema_instance.ts";
import { type Json, JSON_LIMITS, parseJson, writeJson } from "../../json/mod.ts";
import { readLastTurn } from "./last_turn.ts";
import { think, wantsReasoning } from "./thinking.ts";
import { chooseCalls } from "./tool_calls.ts";

/** A whole answer, in the order it is given. */
export interface Planned {
  reasoning?: { text: string; hidden: boolean };
  /** "" for none. */
  text: string;
  calls: ContentBlockOf<"tool_call">[];
}

/** An answer comes back inside the next request, some levels deep. */
const ANSWER_LIMITS = { ...JSON_LIMITS, depth: JSON_LIMITS.depth - 16 };

/** The answer where there is nothing to repeat. */
export const NOTHING = "There is nothing to echo.";

/**
 * The answer to a prompt. The same prompt has the same answer.
 * @throws {GatewayError} `invalid`, for what cannot be read and tools that cannot be called
 */
export function answer(prompt: Prompt): Planned {
  const turn = readLastTurn(prompt);
  const { calls, text, directed } = chooseCalls(prompt, turn);
  const format = prompt.format ?? { type: "text" };
  const said = [turn.results, text].filter((part) => part !== undefined && part !== "").join("\n");
  const reasoning = wantsReasoning(prompt.reasoning)
    ? {
      text: think({ format: format.type, results: turn.results !== undefined, calls }),
      hidden: prompt.reasoning?.display === "omitted",
    }
    : undefined;
  return {
    ...(reasoning !== undefined && { reasoning }),
    text: calls.length > 0 ? textBesideCalls() : formatted(said === "" ? NOTHING : said),
    calls,
  };

  /** An answer in a form is the form or the calls, never both; a call nobody spelled out comes alone. */
  function textBesideCalls(): string {
    return format.type === "text" && directed ? said : "";
  }

  function formatted(said: string): string {
    switch (format.type) {
      case "text":
        return said;
      case "json_object":
        return writeJson({ echo: said });
      case "json_schema":
        return writeJson(ownInstance(said, format.schema) ?? smallestInstance(format.schema) ?? null);
    }
  }
}

/** The value that a text says in JSON, where the schema allows it. */
function ownInstance(text: string, schema: Json): Json | undefined {
  try {
    const value = parseJson(text, ANSWER_LIMITS);
    return isInstance(value, schema) ? value : undefined;
  } catch {
    return undefined;
  }
}
