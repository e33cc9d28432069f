/** `GET /admin/v1/budgets`: lists budgets. */
import { BUDGET_PARAMETERS, type BudgetTexts, findBudgets } from "../billing/reports/budget_search.ts";
import type { BudgetLine } from "../billing/reports/schemas.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { readQuery, runReport } from "./request_input.ts";
import { streamedAdminResponse } from "./response.ts";

/** Lists budgets in their current periods. @throws {GatewayError} `invalid` for parameters that cannot be read */
export async function showBudgets(request: Request, { gateway }: RouteContext): Promise<Response> {
  const data = await findBudgetLines(readQuery(request, BUDGET_PARAMETERS), { gateway, signal: request.signal });
  return await streamedAdminResponse({ object: "list", data });
}

/** Finds budgets. @throws {GatewayError} `invalid` for parameters that cannot be read */
export async function findBudgetLines(
  texts: BudgetTexts,
  { gateway, signal }: { gateway: Gateway; signal: AbortSignal },
): Promise<BudgetLine[]> {
  const { store: { ledger, keys }, config, now } = gateway;
  return await runReport(() => findBudgets({ ledger, keys, config }, texts, { now: now(), signal }));
}
