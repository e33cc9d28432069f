import { assertEquals } from "@std/assert";
import type { Prompt, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { write } from "./upstream_targets.ts";

Deno.test("writeThinking() writes the client's reasoning depth as the model supports it", () => {
  const adaptive = { modes: ["adaptive"], efforts: ["low", "medium", "high"] };
  const manual = { modes: ["manual"] };
  const shown = { type: "adaptive", display: "summarized" };
  const cases: [
    requested: Partial<Prompt> & { reasoning: Reasoning },
    reasoning: Record<string, unknown> | undefined,
    thinking: JsonObject | undefined,
    effort: string | undefined,
    dropped: string[],
  ][] = [
    [{ reasoning: { effort: "high" } }, adaptive, shown, "high", []],
    [{ reasoning: { effort: "high", display: "omitted" } }, adaptive, { ...shown, display: "omitted" }, "high", []],
    [{ reasoning: { mode: "adaptive" } }, adaptive, shown, undefined, []],
    [{ reasoning: { effort: "minimal" } }, adaptive, shown, "low", ["reasoning_effort"]],
    [{ reasoning: { effort: "xhigh" } }, { ...adaptive, efforts: ["low", "high", "max"] }, shown, "max", [
      "reasoning_effort",
    ]],
    [{ reasoning: { effort: "none", mode: "off" } }, adaptive, { type: "disabled" }, undefined, []],
    [{ reasoning: { mode: "off" } }, { ...adaptive, mandatory: true }, undefined, "low", ["reasoning"]],
    [{ reasoning: { display: "omitted" } }, adaptive, undefined, undefined, []],
    [{ reasoning: { display: "summarized" } }, adaptive, shown, undefined, []],
    [{ reasoning: { display: "summarized" } }, manual, undefined, undefined, []],
    [{ reasoning: { effort: "high" } }, undefined, undefined, undefined, []],
    [
      { protocol: "responses", reasoning: { effort: "low" } },
      adaptive,
      { ...shown, display: "omitted" },
      "low",
      [],
    ],
    [{ protocol: "responses", reasoning: { effort: "low", display: "summarized" } }, adaptive, shown, "low", []],
    // Models that take a budget.
    [{ reasoning: { effort: "medium" } }, manual, { type: "enabled", budget_tokens: 19_200 }, undefined, []],
    [{ reasoning: { mode: "adaptive" } }, manual, { type: "enabled", budget_tokens: 19_200 }, undefined, []],
    [{ reasoning: { effort: "minimal" } }, manual, { type: "enabled", budget_tokens: 1280 }, undefined, []],
    [
      { maxTokens: 1500, reasoning: { effort: "low" } },
      manual,
      { type: "enabled", budget_tokens: 1024 },
      undefined,
      [],
    ],
    [{ maxTokens: 1024, reasoning: { effort: "low" } }, manual, undefined, undefined, ["reasoning_effort"]],
    [
      { reasoning: { mode: "manual", budgetTokens: 5000 } },
      manual,
      { type: "enabled", budget_tokens: 5000 },
      undefined,
      [],
    ],
    [{ reasoning: { mode: "manual", budgetTokens: 9 } }, manual, { type: "enabled", budget_tokens: 1024 }, undefined, [
      "reasoning.max_tokens",
    ]],
    [
      { maxTokens: 2000, reasoning: { mode: "manual", budgetTokens: 5000 } },
      manual,
      { type: "enabled", budget_tokens: 1999 },
      undefined,
      ["reasoning.max_tokens"],
    ],
    [{ reasoning: { mode: "manual", budgetTokens: 5000 } }, adaptive, shown, undefined, ["reasoning.max_tokens"]],
    [{ reasoning: { mode: "off" } }, manual, { type: "disabled" }, undefined, []],
    // A client of this protocol specifies the thinking itself.
    [{ protocol: "messages", reasoning: { effort: "low" } }, adaptive, undefined, "low", []],
    [{ protocol: "messages", reasoning: { mode: "adaptive" } }, adaptive, { type: "adaptive" }, undefined, []],
    [
      { protocol: "messages", reasoning: { mode: "adaptive", display: "omitted", effort: "high" } },
      adaptive,
      { type: "adaptive", display: "omitted" },
      "high",
      [],
    ],
    [
      { protocol: "messages", reasoning: { mode: "manual", budgetTokens: 2000 } },
      manual,
      { type: "enabled", budget_tokens: 2000 },
      undefined,
      [],
    ],
    [
      {
        protocol: "messages",
        reasoning: {
          mode: "off",
          unknownMembers: { from: "messages", members: { type: "between_tools", display: "updates" } },
        },
      },
      adaptive,
      { type: "between_tools", display: "updates" },
      undefined,
      [],
    ],
    [{ protocol: "messages", reasoning: { mode: "off" } }, adaptive, { type: "disabled" }, undefined, []],
    [{ protocol: "messages", reasoning: { mode: "off" } }, { ...adaptive, mandatory: true }, undefined, "low", [
      "thinking",
    ]],
  ];
  for (const [requested, reasoning, thinking, effort, dropped] of cases) {
    const written = write(requested, { reasoning });
    const config = effort === undefined ? undefined : { effort };
    assertEquals<unknown>(
      [written.body.thinking, written.body.output_config, written.dropped],
      [thinking, config, dropped],
      JSON.stringify([requested, reasoning]),
    );
  }
});
