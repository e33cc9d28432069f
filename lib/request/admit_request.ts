/** Admits a text request: limits and budgets are taken, and each model that may answer gets the request as it sees it. */
import { scanMembers, spliceMembers } from "../json/mod.ts";
import type { Echo } from "../protocols/codec.ts";
import { admit, type Admitted } from "./admission.ts";
import type { Candidate } from "./candidates.ts";
import { BETAS, type Screened } from "./extras.ts";
import type { AdmittedModel, AdmittedModels } from "./admitted_model.ts";
import { RequestEcho } from "./request_echo.ts";
import type { RequestState } from "./state.ts";

/**
 * Takes what a request needs of limits and budgets.
 * @returns the admitted models, the preferred one first
 * @throws {GatewayError} `limited`
 */
export async function admitRequest(
  candidates: readonly Candidate[],
  screened: Screened,
  state: RequestState,
): Promise<AdmittedModels> {
  const { context, meter } = state;
  const [first, ...others] = await admit(candidates, { meter, context });
  const now = () => Math.floor(context.gateway.now() / 1000);
  const clientOf = { screened, state, createdAt: now(), completedAt: now };
  const admitted: AdmittedModels = [
    withClientRequest(first, clientOf),
    ...others.map((other) => withClientRequest(other, clientOf)),
  ];
  state.admit(admitted);
  return admitted;
}

function withClientRequest(
  admitted: Admitted,
  { screened, state, createdAt, completedAt }:
    & { screened: Screened; state: RequestState }
    & Required<Pick<Echo, "createdAt" | "completedAt">>,
): AdmittedModel {
  const { model, prompt, cap, dropped } = admitted;
  const { body } = screened;
  const header = (name: string) => state.request.headers.get(name);
  const betas = screened.betasFor(model, header(BETAS));
  for (const name of betas.dropped) dropped.add(name);
  return {
    ...admitted,
    client: {
      echo: new RequestEcho({
        requestId: state.context.requestId,
        createdAt,
        completedAt,
        model: model.id,
        keeper: state.context.keeper,
        prompt,
        body,
        cap,
      }),
      body: cap === undefined ? body : scanMembers(spliceMembers(body, { [cap.param]: String(cap.tokens) })),
      header: (name) => name === BETAS ? betas.value : header(name),
    },
  };
}
