/** Plans the complete answer of the echo model. Limits are applied later. */
import { smallestInstance } from "./smallest_instance.ts";
import type { ContentBlockOf, Prompt } from "../../protocols/canonical/types.ts";
import { isInstance } from "./json_schema_instance.ts";
import { type Json, parseJson, writeJson } from "../../json/mod.ts";
import { LIMITS } from "./directives.ts";
import { readLastUserTurn } from "./last_user_turn.ts";
import { think, wantsReasoning } from "./thinking.ts";
import { chooseCalls } from "./tool_calls.ts";

/** A whole answer, in the order of its events. */
export interface PlannedAnswer {
  reasoning?: { text: string; hidden: boolean };
  /** "" if there is no text. */
  text: string;
  calls: ContentBlockOf<"tool_call">[];
}

/** The answer to a prompt without text to repeat. */
export const NOTHING = "There is nothing to echo.";

/**
 * Plans the answer to a prompt. Equal prompts get equal answers.
 * @throws {GatewayError} `invalid` for parts that cannot be read, and for tools that cannot be called
 */
export function planAnswer(prompt: Prompt): PlannedAnswer {
  const turn = readLastUserTurn(prompt);
  const { calls, text, directed } = chooseCalls(prompt, turn);
  const format = prompt.format ?? { type: "text" };
  const echoed = [turn.results, text].filter((part) => part !== undefined && part !== "").join("\n");
  const reasoning = wantsReasoning(prompt.reasoning)
    ? {
      text: think({ format: format.type, results: turn.results !== undefined, calls }),
      hidden: prompt.reasoning?.display === "omitted",
    }
    : undefined;
  return {
    ...(reasoning !== undefined && { reasoning }),
    text: calls.length > 0 ? textBesideCalls() : formatted(echoed === "" ? NOTHING : echoed),
    calls,
  };

  /** Returns the text beside calls. There is one only in plain text answers to prompts with `call:` directives. */
  function textBesideCalls(): string {
    return format.type === "text" && directed ? echoed : "";
  }

  function formatted(echoed: string): string {
    switch (format.type) {
      case "text":
        return echoed;
      case "json_object":
        return writeJson({ echo: echoed });
      case "json_schema":
        return writeJson(ownInstance(echoed, format.schema) ?? smallestInstance(format.schema) ?? null);
    }
  }
}

/** Parses a text as JSON; `undefined` if the value does not match the schema. */
function ownInstance(text: string, schema: Json): Json | undefined {
  try {
    const value = parseJson(text, LIMITS);
    return isInstance(value, schema) ? value : undefined;
  } catch {
    return undefined;
  }
}
