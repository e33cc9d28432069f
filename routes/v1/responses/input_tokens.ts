export { countInputTokens as POST } from "../../../lib/responses/count_input_tokens.ts";
