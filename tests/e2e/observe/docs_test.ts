import { assertEquals } from "@std/assert";
import { startGateway } from "../../support/gateway.ts";
import { documentText } from "../../support/documents.ts";

Deno.test("the page of log events lists every member of a request's line", async () => {
  const words = new Set(documentText("docs/reference/log-events.md").match(/[a-z][a-z0-9_]*/g));
  await using gateway = startGateway({ log: { client_address: true } });
  const body = { model: "sluice/echo", messages: [{ role: "user", content: "x" }] };
  await (await gateway.ask("chat", body)).text();
  const members = gateway.requestLines.flatMap((line) => Object.keys(line)).filter((name) => !/^tokens_/.test(name));
  assertEquals(members.length > 20, true);
  assertEquals(members.filter((name) => !words.has(name)), []);
});
