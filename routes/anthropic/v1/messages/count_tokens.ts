export { countTokens as POST } from "../../../../lib/request/count_tokens.ts";
