export { signIn as POST, signInPage as GET } from "../../../lib/console/sign_in.tsx";
