/** Budgets over HTTP. */
import { listBudgets } from "../billing/reports/budget_report.ts";
import type { RouteContext } from "../server/router.ts";
import { readQuery } from "./request_input.ts";
import { streamedAdminResponse } from "./response.ts";

/** Every budget in its present period. @throws {GatewayError} `invalid` for any parameter */
export async function showBudgets(request: Request, { gateway }: RouteContext): Promise<Response> {
  readQuery(request, []);
  const { store: { ledger, keys }, config, now } = gateway;
  const data = await listBudgets({ ledger, keys, config }, { now: now(), signal: request.signal });
  return await streamedAdminResponse({ object: "list", data });
}
