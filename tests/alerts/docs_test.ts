import { assertEquals } from "@std/assert";
import { ALERT_TYPES } from "../../lib/alerts/event.ts";
import { signatureOf } from "../../lib/alerts/webhook.ts";
import { blocksOf, documentText } from "../support/documents.ts";

const PAGE = "docs/how-to/alerts.md";

Deno.test("the documented signature check accepts only genuine webhooks", async () => {
  const [code = ""] = blocksOf(PAGE, "js");
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/check.mjs`, code);
    const { isFromSluice } = await import(`file://${folder}/check.mjs`);
    const body = '{"id":"evt_1"}';
    const header = signatureOf(body, { secret: "secret", now: Date.now() });
    assertEquals(isFromSluice(header, body, "secret"), true);
    const old = signatureOf(body, { secret: "secret", now: Date.now() - 400_000 });
    const wrong = [
      [old, body, "secret"],
      [header, `${body} `, "secret"],
      [header, body, "other"],
      [header.replace(/t=\d/, "t=2"), body, "secret"],
      ["", body, "secret"],
      [undefined, body, "secret"],
    ];
    for (const args of wrong) assertEquals(isFromSluice(...args), false, JSON.stringify(args));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("the documentation names every type of alert", () => {
  assertEquals(ALERT_TYPES.filter((type) => !documentText(PAGE).includes(`\`${type}\``)), []);
});
