import { assert, assertEquals } from "@std/assert";
import { parseJsonc } from "../../../lib/config/jsonc.ts";
import { parseConfig } from "../../../lib/config/parse.ts";
import { startGateway } from "../../support/gateway.ts";

const PAGE = await Deno.readTextFile(new URL("../../../docs/how-to/embeddings.md", import.meta.url));

function block(language: string): string {
  const text = new RegExp("```" + language + "\\n([^]*?)```").exec(PAGE)?.[1];
  assert(text !== undefined, `the page has no ${language}`);
  return text;
}

Deno.test("the program in the documentation finds the right text, with vectors and reranking", async () => {
  await using gateway = startGateway({});
  const program = block("js").replace("http://127.0.0.1:8790", gateway.url);
  assert(program.includes(gateway.url));
  const printed: string[] = [];
  const run = new Function("process", "console", `return (async () => {${program}})()`);
  await run({ env: { SLUICE_API_KEY: gateway.key.key } }, { log: (text: string) => printed.push(text) });
  assertEquals(printed, Array(2).fill("Reset your password in the settings."));
});

Deno.test("the configuration in the documentation is valid", () => {
  const { models } = parseConfig(parseJsonc(block("jsonc")), () => "sk-0123456789abcdef");
  assertEquals(models.map(({ id }) => id), ["openai/text-embedding-3-small", "cohere/rerank-v3.5"]);
});
