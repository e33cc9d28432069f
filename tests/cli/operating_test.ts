import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { parseArguments } from "../../lib/cli/arguments.ts";
import { parseJsonc } from "../../lib/config/jsonc.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { explainEntry } from "../../lib/billing/reports/explain.ts";
import { explanationText } from "../../lib/billing/reports/explain_text.ts";
import { entryOf, SHEET, tokensOf } from "../billing/reports/entries.ts";
import { readDocument, shownCommands } from "./operating_doc.ts";

Deno.test("the commands of docs/operating.md are commands", async () => {
  const commands = (await shownCommands()).flat().map(({ command }) => command)
    .filter((command) => command.startsWith("sluice"));
  assert(commands.length > 12);
  for (const command of commands) parseArguments(command.split(" ").slice(1));
});

Deno.test("the configuration of docs/operating.md loads", async () => {
  const [, text = ""] = /^```jsonc\n(.*?)^```$/ms.exec(await readDocument()) ?? [];
  const { groups } = parseConfig(parseJsonc(text), () => "0123456789abcdef");
  assertEquals(groups.team?.price_factor, "0.8");
});

Deno.test("the arithmetic of docs/operating.md is that of the program", async () => {
  const entry = entryOf({
    held: 262_457_000_000n,
    tokens: tokensOf({ prompt: 13, completion: 7 }),
    sheet: { ...SHEET, factor: "0.8", prompt: "0.00000125", completion: "0.00001" },
  });
  const [, arithmetic = ""] = explanationText(explainEntry({ ...entry, seq: 7, check: 0 })).split("\n\n");
  assertStringIncludes(await readDocument(), arithmetic);
});
