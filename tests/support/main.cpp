#include "support/session.hpp"

int main(int argc, char** argv) { return pipewright::test::run_session(argc, argv); }
