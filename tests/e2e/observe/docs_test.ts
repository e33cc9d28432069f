import { assertEquals } from "@std/assert";
import { startGateway } from "../../support/gateway.ts";
import { readExposition } from "./exposition.ts";

const DOCUMENT = await Deno.readTextFile("docs/observability.md");
const WORDS = new Set(DOCUMENT.match(/[a-z][a-z0-9_]*/g));

Deno.test("the documentation names every metric with its labels, and no other", async () => {
  const limits = { requests_per_minute: 5 };
  await using gateway = startGateway({ groups: { default: { budget: { usd: "5" }, limits } } });
  await (await fetch(`${gateway.url}/healthz`)).text();
  const families = readExposition(await (await fetch(`${gateway.url}/metrics`)).text());
  assertEquals([...families.keys()].filter((name) => !WORDS.has(name)), []);
  const told = [...DOCUMENT.matchAll(/`((?:sluice|process)_[a-z_]+)(?:\{([a-z_,]+)\})?`/g)];
  for (const [, name = "", labels = ""] of told) {
    const family = families.get(name);
    assertEquals(family?.name, name);
    for (const { labels: given } of family?.samples.slice(0, 1) ?? []) {
      assertEquals(Object.keys(given).filter((label) => label !== "le").join(), labels, name);
    }
  }
});

Deno.test("the documentation names every member of a request's line", async () => {
  await using gateway = startGateway({ log: { client_address: true } });
  const body = { model: "sluice/echo", messages: [{ role: "user", content: "x" }] };
  await (await gateway.ask("chat", body)).text();
  const members = gateway.requestLines.flatMap((line) => Object.keys(line)).filter((name) => !/^tokens_/.test(name));
  assertEquals(members.length > 20, true);
  assertEquals(members.filter((name) => !WORDS.has(name)), []);
});
