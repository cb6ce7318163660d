// The main of every test program that needs no GPU.
#include "support/ranks.hpp"

int main(int argc, char** argv) { return ronda::test::run_tests(argc, argv); }
