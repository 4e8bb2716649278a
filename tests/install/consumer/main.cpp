#include <iostream>
#include <pipewright/plan/schedule.hpp>
#include <pipewright/plan/schedules.hpp>

int main() { std::cout << to_string(pipewright::plan::make_1f1b(2, 3)); }
