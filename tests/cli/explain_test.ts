import { assertEquals, assertStringIncludes } from "@std/assert";
import { startBilled } from "./billed_gateway.ts";
import { inFolder, reuseGateways, reuseProcess, run } from "../support/program.ts";

reuseProcess();
reuseGateways();

Deno.test("explain shows a request of a running gateway by the id that its client received", () =>
  inFolder(async (folder) => {
    const gateway = await startBilled(folder);
    const id = await gateway.ask();
    const { code, out } = await run(["explain", id], { folder });
    assertEquals(code, 0);
    for (
      const line of [
        `Request:      ${id}`,
        `Key:          ci (${gateway.keyId})`,
        "Group:        team",
        "Model:        acme/assistant",
        "Status:       200, end",
        "  13 prompt tokens x 0.00000125 USD x 0.8 = 0.000013 USD",
        "  7 completion tokens x 0.00001 USD x 0.8 = 0.000056 USD",
        "  Sum: 0.000069 USD",
        "  Charged: 0.000069 USD",
      ]
    ) assertStringIncludes(out, `${line}\n`);
    const json = JSON.parse((await run(["explain", id.slice("req_".length), "--json"], { folder })).out);
    assertEquals([json.id, json.charged_usd, json.adds_up], [id, "0.000069", true]);
    const unknown = await run(["explain", "req_never"], { folder });
    assertEquals([unknown.code, unknown.out, unknown.err], [
      1,
      "",
      'Cannot explain the request "req_never": it is not in the ledger\n' +
      "Requests with a refused key are only in the log, and entries are deleted after ledger.keep_days\n",
    ]);
    await gateway.stop();
  }));
