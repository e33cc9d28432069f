/** Numbers of a client that a 64-bit float cannot write back as they came, over the wire. */
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { startUpstream } from "../../upstream/mod.ts";
import { WHOLE } from "../../upstream/replies.ts";

function body(member: string): string {
  return `{"model":"acme/one","max_tokens":9,"messages":[{"role":"user","content":"Hi"}],${member}}`;
}

Deno.test("a float parameter accepts every finite number with any number of digits", async () => {
  for (const protocol of ["chat", "messages"] as const) {
    await using host = startUpstream(() => ({ body: JSON.stringify(WHOLE[protocol]) }));
    await using gateway = startGateway(oneModel(protocol, host.url));
    for (
      const [text, value] of [["0.69999999999999996", 0.7], ["0.1000000000000000055511151231257827", 0.1], [
        "1e-400",
        0,
      ]]
    ) {
      for (const client of ["chat", "messages"] as const) {
        const response = await gateway.ask(client, body(`"temperature":${text}`));
        assertEquals(response.status, 200, await response.text());
        const sent = host.requests.at(-1)?.body ?? "";
        // A relayed body keeps its text; a translated one has the same number.
        if (client === protocol) assertStringIncludes(sent, `"temperature":${text}`);
        assertEquals(JSON.parse(sent).temperature, value);
      }
    }
    const tooLarge = await gateway.ask("chat", body(`"temperature":1e400`));
    assertEquals(tooLarge.status, 400);
    assertMatch((await tooLarge.json()).error.message, /temperature/);
  }
});

Deno.test("a seed of any size reaches the upstream unchanged", async () => {
  await using host = startUpstream(() => ({ body: JSON.stringify(WHOLE.chat) }));
  await using gateway = startGateway(oneModel("chat", host.url));
  for (const seed of ["9007199254740993", "-9223372036854775808", "18014398509481984", "7"]) {
    const response = await gateway.ask("chat", body(`"seed":${seed}`));
    assertEquals(response.status, 200, await response.text());
    assertStringIncludes(host.requests.at(-1)?.body ?? "", `"seed":${seed}`);
  }
  for (const seed of ["1.5", '"7"', "1e400"]) {
    const response = await gateway.ask("chat", body(`"seed":${seed}`));
    assertEquals(response.status, 400);
    assertEquals((await response.json()).error.message, "Invalid value for seed: Expected an integer");
  }
});

Deno.test("a count beyond the safe integers is refused", async () => {
  await using gateway = startGateway({});
  const response = await gateway.ask(
    "chat",
    `{"model":"sluice/echo","max_completion_tokens":9007199254740993,"messages":[{"role":"user","content":"Hi"}]}`,
  );
  assertEquals(response.status, 400);
  assertMatch((await response.json()).error.message, /max_completion_tokens/);
});
